"""What the matching rules of attributes pass over: two spellings of one value.

    mail             Anna@example.com   anna@example.com    one value
    homeDirectory    /home/Anna         /home/anna          two values
    telephoneNumber  +49 123-45         +4912345            one value

Only attributes of the standard schemas, whose matching rule is known, have more than one spelling.
"""

from __future__ import annotations

import re
from itertools import pairwise


def spelt_as(attribute: str, value: str) -> str:
    """The value in the one spelling in which it is compared. Binary values, and those of other attributes, stay as they are."""
    name = attribute.partition(";")[0].lower()
    if value.startswith("base64:"):
        return value
    if name in _NUMBERS:
        return re.sub(r"[\s-]", "", value.lower())
    plain = " ".join(value.lower().split())
    if name in _NAMES:
        return ",".join(_EQUALS.sub("=", part.strip(), count=1) for part in parts_of(plain))
    return plain if name in _WORDS else value


def parts_of(name: str) -> list[str]:
    r"""The parts of the name of an entry: a comma ends one, but for a comma behind a backslash.

    >>> parts_of(r"cn=a\, b,cn=c\\,dc=d")
    ['cn=a\\, b', 'cn=c\\\\', 'dc=d']
    """
    ends = [found.end() - 1 for found in _COMMA.finditer(name)]
    return [name[last + 1 : end] for last, end in pairwise([-1, *ends, len(name)])]


def parent_of(name: str) -> str:
    r"""The name of the entry above; empty: there is none.

    >>> parent_of(r"cn=a\, b,ou=c,dc=d")
    'ou=c,dc=d'
    """
    found = _COMMA.search(name)
    return name[found.end() :] if found else ""


_COMMA = re.compile(r"(?<!\\)(?:\\\\)*,")
_EQUALS = re.compile(r" ?= ?")

_NUMBERS = frozenset(
    {
        *("telephonenumber", "facsimiletelephonenumber", "fax", "homephone", "hometelephonenumber", "mobile"),
        *("mobiletelephonenumber", "pager", "pagertelephonenumber"),
    }
)
"""Without spaces and hyphens (telephoneNumberMatch)."""

_NAMES = frozenset(
    {
        *("member", "uniquemember", "owner", "manager", "seealso", "secretary", "roleoccupant", "aliasedobjectname"),
        *("distinguishedname", "documentauthor", "associatedname", "ditredirect"),
    }
)
"""Names of entries (distinguishedNameMatch)."""

_WORDS = frozenset(
    {
        *("cn", "commonname", "sn", "surname", "givenname", "initials", "generationqualifier", "displayname", "name"),
        *("ou", "organizationalunitname", "o", "organizationname", "l", "locality", "localityname", "st"),
        *("stateorprovincename", "street", "streetaddress", "c", "countryname", "co", "friendlycountryname", "dc"),
        *("domaincomponent", "title", "description", "businesscategory", "postaladdress", "registeredaddress"),
        *("homepostaladdress", "postalcode", "postofficebox", "physicaldeliveryofficename", "destinationindicator"),
        *("dnqualifier", "houseidentifier", "knowledgeinformation", "serialnumber", "uid", "userid", "mail"),
        *("rfc822mailbox", "employeenumber", "employeetype", "departmentnumber", "carlicense", "roomnumber"),
        *("preferredlanguage", "info", "host", "associateddomain", "objectclass"),
    }
)
"""Without case, and several spaces as one (caseIgnoreMatch, caseIgnoreIA5Match, caseIgnoreListMatch, names of classes)."""
