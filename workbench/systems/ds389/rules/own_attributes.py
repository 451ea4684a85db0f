"""Attributes that each server writes, computes or keeps for itself: no change of a client gives them their values."""

from __future__ import annotations

MEMBER_OF = "memberof"
"""Computed by a plug-in, and where it is off an attribute like any other."""

BY_SERVER = frozenset(
    {
        *("creatorsname", "modifiersname", "createtimestamp", "modifytimestamp", "nsuniqueid", "parentid", "entryid"),
        *("entryuuid", "dsentrydn", "entrydn", "entryusn", "internalmodifiersname", "internalcreatorsname", "nsrole"),
        *("numsubordinates", "tombstonenumsubordinates", "hassubordinates", "structuralobjectclass", "dncomp"),
        *("subschemasubentry", "governingstructurerule", "pwdreset", "pwdtprreset", "modrdn-nsds50ruv"),
        *("nsds5replconflict", "nsparentuniqueid", "nstombstonecsn", "nscpentrydn"),
    }
)
"""What only the server itself writes (NO-USER-MODIFICATION in its schema, and traces of replication): sent by others it is
refused."""

LOGINS = frozenset(
    {
        *(
            "passwordretrycount",
            "retrycountresettime",
            "accountunlocktime",
            "passwordexpwarned",
            "passwordgraceusertime",
        ),
        *("lastlogintime", "lastloginhistory"),
    }
)
"""What each server notes of the logins there: of one entry it may differ everywhere, and from one moment to the next."""

CONFLICT = frozenset({"conflictcsn"})
"""What a server notes of a conflict that it resolved: by the order in which the two changes came to it."""

OWN_NOTES = frozenset({"passwordretrycount", "retrycountresettime", "accountunlocktime"})
"""What a server writes down of failed logins, and sends nobody: seen in changelogs of suppliers, never at their consumers."""

NOT_COMPARED = BY_SERVER | LOGINS | CONFLICT | {MEMBER_OF}
"""Where servers differ in these, no change was lost."""
