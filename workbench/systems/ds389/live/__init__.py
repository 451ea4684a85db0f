"""Live servers of 389 Directory Server.

instances   the instances of this machine, as their folders describe them
connection  one server over LDAP: time-outs on everything, and failures as sentences
scrubbed    what servers write, without the secrets in it
exports     what a server writes itself when asked: its changelog, its entries
logs        the log files of an instance
feeding     who feeds whom, and behind whom replication must not be logged
servers     the servers of one collection: what is read of each
"""
