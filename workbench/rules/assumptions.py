"""What findings take for granted, as codes: a closed list, for filters and runbooks are written for it."""

from __future__ import annotations

from collections.abc import Mapping

LOG_BEGINS_AT_FIRST_RECORD, CLOCK_IN_UTC = "log_begins_at_first_record", "clock_in_utc"
CONSUMER_GUESSED = "consumer_guessed"
CLOCKS_AGREE = "clocks_agree"
SOURCE_NAMED, SOURCE_OPEN, SOURCE_BY_START = "source_named_by_person", "source_open", "source_by_its_start"
FURTHEST_IS_SOURCE = "furthest_log_is_source"
DEFAULT_SETTING = "default_setting"
ASKED_IN_ORDER, LOG_READ_FIRST, NOT_CUT_BACK = "asked_in_order", "log_read_first", "log_not_cut_back"
FILES_OF_ONE_TIME, SAME_HISTORY = "files_of_one_time", "log_of_one_history"
COLLECTED_IN_ORDER = "collected_in_order"
MASTER_BY_ONLY_LOG = "master_by_only_log"
SOURCE_OF_KIN = "source_of_kin"
DATA_NAMED, NEW_DOMAIN_ENDS = "data_named_by_person", "new_domain_ends"

ASSUMPTIONS: Mapping[str, str] = {
    LOG_BEGINS_AT_FIRST_RECORD: "a changelog does not say how far it was trimmed: what it shows first is taken for that",
    CLOCK_IN_UTC: "no file tells the time zone of the server: its clock is taken to run in UTC",
    CLOCKS_AGREE: "clocks that agree with each other are taken to be right: the files do not say how they were when read",
    SOURCE_NAMED: "a person named the server whose log is the source: the logs do not prove it",
    SOURCE_OPEN: "the source is not named: changes that two logs hold alike are taken for changes that it committed",
    SOURCE_BY_START: "the server whose log alone begins with a start is the source, if the log of the source was collected",
    FURTHEST_IS_SOURCE: "nothing tells who follows whom: the database whose log goes furthest is taken for the source",
    ASKED_IN_ORDER: "servers were asked in the order of the times that the collected files have for it",
    LOG_READ_FIRST: "a log that ends before what its replicas have was read before them: its server has not lost the end",
    NOT_CUT_BACK: "what a node below a source has, the source has: its log was not cut back between two reports",
    MASTER_BY_ONLY_LOG: "the one log that numbers its commits is taken for that of the master: no queue shows that it is",
    SOURCE_OF_KIN: "a node of which no table and no setting tells follows the source that others of its database follow",
    DEFAULT_SETTING: "a setting that was not collected is taken to have the default of the program",
    FILES_OF_ONE_TIME: "all files are taken to be of one time: a server may have received since what its older file lacks",
    SAME_HISTORY: "of nodes of one source that hold different logs, one that was not compared has the log of its source",
    COLLECTED_IN_ORDER: "snapshots are taken to be of the order in which they were loaded: no clock in the files proves it",
    DATA_NAMED: "a person named the server whose data stays: of two domains no file tells which data is right",
    NEW_DOMAIN_ENDS: "a domain in which no collected server has an entry that people made is taken for the one that ends",
    CONSUMER_GUESSED: "the address of a link is of no collected server: what waits is for the server that it probably means",
}
"""Code -> the assumption in words."""
