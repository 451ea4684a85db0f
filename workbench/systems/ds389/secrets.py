"""The secrets of 389 Directory Server: attributes whose values no table, log or error may hold."""

from workbench.safety import Secrets, excerpt

SECRETS = Secrets(
    [
        "userPassword",
        "unhashed#user#password",
        "authPassword",
        "passwordHistory",
        "nsDS5ReplicaCredentials",
        "nsDS5ReplicaBootstrapCredentials",
        "nsMultiplexorCredentials",
        "nsslapd-rootpw",
        "nsSymmetricKey",
        "nsKeyEncryptionKey",
        "dnaRemoteBindCred",
        "krbPrincipalKey",
        "krbMKey",
        "krbPwdHistory",
        "ipaNTHash",
        "ipaNTTrustAuthOutgoing",
        "ipaNTTrustAuthIncoming",
        "ipaIdpClientSecret",
        "ipaSecretKey",
        "ipaPrivateKey",
        "ipaTokenOTPkey",
        "ipaTokenRadiusSecret",
        "ipaVaultPublicKey",
        "ipaVaultSalt",
        "sambaNTPassword",
        "sambaLMPassword",
        "sambaPasswordHistory",
        "sambaClearTextPassword",
        "sambaPreviousClearTextPassword",
        "userPKCS12",
        "unicodePwd",
        "pwdHistory",
        "oathSecret",
    ]
)


def harmless_start(unit: bytes) -> str:
    """The first characters of a unit that could not be read, without secrets."""
    return excerpt(unit, SECRETS)
