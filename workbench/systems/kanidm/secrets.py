"""The secrets of Kanidm: attributes whose values no table, log or error may hold."""

from workbench.safety import Secrets

SECRETS = Secrets(
    [
        "primary_credential",
        "passkeys",
        "attested_passkeys",
        "unix_password",
        "password_import",
        "totp_import",
        "backup_codes",
        "radius_secret",
        "oauth2_rs_basic_secret",
        "oauth2_client_secret",
        "oauth2_rs_token_key",
        "oauth2_session",
        "user_auth_token_session",
        "api_token_session",
        "credential_update_intent_token",
        "es256_private_key_der",
        "rs256_private_key_der",
        "jws_es256_private_key",
        "fernet_private_key_str",
        "key_internal_data",
        "cookie_private_key",
        "private_cookie_key",
        "id_verification_eckey",
        "certificate_private_key",
        "keyhandles",
        "password",
        "Argon2id",
    ]
)
