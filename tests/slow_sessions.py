"""A slow, obvious second opinion on one send session, written from the text of the rules alone.

Lists, dicts and linear scans over the inputs of the kinds ``session`` and ``design_session`` as they stand in the given
cases; nothing of ``workbench`` is imported. Comments name the line of the rules they follow: 1b.* is the reference of
389 Directory Server, "design n" the numbered reading of the design document. A CSN is 20 lower-case hex digits, whose
order as text is their order; "no CSN" is the empty text, which is lower than any.

Beyond the cases an input may have ``start_iteration_records``: dummy records (1a), which are read and judged like changes
and then dropped. Beyond them a result has ``against``, the consumer's and the supplier's maximum at each outcome, and
``stops``, those of the first load; and a session that comes to a load in a state that it was in before, with nothing new
sent since, ends there.
"""

import re

NO_CSN = ""
ELEMENT = re.compile(r"\{replica (\d+)[^}]*\}(?: (\w{20}|-) (\w{20}|-))?")


def rid_of(csn):
    return str(int(csn[12:16], 16))


def read_ruv(values):
    """Rid -> [min, max], in the order of the values; an element without CSNs has two empty ones.

    An element with one CSN, which the server can have in memory and no value can say, is written with a dash here.
    """
    ruv = {}
    for value in values:
        element = ELEMENT.match(value)
        if element:
            ruv[element[1]] = [NO_CSN if end in (None, "-") else end for end in element.groups()[1:]]
    return ruv


def happen(events, log, dummies, ruv):
    for event in events:
        csn = event["csn"]
        if event["do"] == "changelog_add":
            if csn not in log:
                log.append(csn)
                log.sort()
        elif event["do"] == "changelog_delete":
            if csn in log:
                log.remove(csn)
                dummies.discard(csn)
        else:
            element = ruv.setdefault(rid_of(csn), [NO_CSN, NO_CSN])
            if element[0] == NO_CSN or csn < element[0]:
                element[0] = csn
            if csn > element[1]:
                element[1] = csn


def blocks_without_prev(blocks):
    """What the judgement of the next buffer depends on; prev is set anew behind it."""
    return [(block["rid"], block["cons"], block["loc"], block["min"]) for block in blocks]


def session(inputs):
    """What the real server does: 1b.3 to 1b.7."""
    dummies = set(inputs.get("start_iteration_records", [])) - set(inputs["supplier_changelog"])
    log = sorted({*inputs["supplier_changelog"], *dummies})
    supplier = read_ruv(inputs["supplier_ruv"])
    consumer = read_ruv(inputs["consumer_ruv"])
    events = dict(inputs["events_after_n_changes_sent"])
    cleaned = {str(rid) for rid in inputs["cleaned_replica_ids"]}
    own = str(inputs["consumer_replica_id"])
    nothing = [NO_CSN, NO_CSN]

    # 1b.3: fixed at the start of the session
    ignore_own = not (supplier.get(own, nothing)[1] > consumer.get(own, nothing)[1])

    blocks = []

    def refresh():
        """1b.3 and the first line of 1b.7: loc is taken anew, prev is what loc was, new rids get a block."""
        for rid, (low, high) in supplier.items():
            if not low or not high or rid in cleaned or (rid == own and ignore_own):
                continue
            for block in blocks:
                if block["rid"] == rid:
                    break
            else:
                low_consumer, high_consumer = consumer.get(rid, nothing)
                block = {"rid": rid, "cons": high_consumer if low_consumer else NO_CSN, "loc": NO_CSN}
                blocks.append(block)
            block["prev"] = block["loc"]
            block["loc"] = high
            block["min"] = low

    def smallest(candidates):
        """The smallest candidate; of two with the same CSN the one whose block comes first."""
        best = None
        for candidate in candidates:
            if best is None or candidate[0] < best[0]:
                best = candidate
        return best

    def position(csn, inclusive):
        """1b.4: exact look-up, then from it or from the next; None = not found, also if nothing lies behind."""
        if csn not in log:
            return None
        at = log.index(csn) + (0 if inclusive else 1)
        return at if at < len(log) else None

    result = {
        "decision": "send",
        "anchor_csn": None,
        "sent": [],
        "outcome_in_order": [],
        "session_end": None,
        "buffer_loads": 0,
        "against": [],
        "stops": {},
        "consumer_rid_ignored": ignore_own,
    }

    # 1b.4: the first anchor
    refresh()
    candidates = []
    for block in blocks:
        if block["cons"] == NO_CSN:
            candidates.append((block["min"], True))
        elif block["loc"] > block["cons"]:
            candidates.append((block["cons"], False))
    if not candidates:
        result["decision"] = "nothing_to_send"
        return result
    bound = smallest(candidates)
    start = result["anchor_csn"] = bound[0]
    at = position(*bound)
    if at is None and inputs["ignore_missing_change"] != "never":
        # 1b.5: the first record at or above the anchor, inclusive
        for index, csn in enumerate(log):
            if csn >= start:
                at, bound = index, (csn, True)
                break
    if at is None:
        result["decision"] = "anchor_not_found"
        return result

    result["stops"] = {block["rid"]: block["loc"] for block in blocks}
    states = []
    while True:
        state = repr((bound, sorted(set(result["sent"])), log, supplier, blocks_without_prev(blocks), events))
        if state in states:
            result["session_end"] = "would_never_end"
            return result
        states.append(state)
        buffer = log[at : at + inputs["records_per_buffer"]]
        result["buffer_loads"] += 1
        if result["buffer_loads"] == 1:
            happen(events.pop("0", []), log, dummies, supplier)
        blocked = set()
        for csn in buffer:
            current = csn
            rid = rid_of(csn)
            block = None
            for each in blocks:
                if each["rid"] == rid:
                    block = each
            against = [block["cons"] or None, block["loc"]] if block else [None, None]
            # 1b.6, in the order of its rows
            if rid == own and ignore_own:
                outcome = "consumer_rid"
            elif csn[:8] in ("0000006f", "000000de"):
                outcome = "helper"
                against = [None, None]
            elif block is None:
                outcome = "unknown_rid"
            elif rid in blocked:
                outcome = "beyond_local_max"
            elif csn <= block["cons"]:
                outcome = "covered"
            elif csn <= block["loc"]:
                outcome = "sent"
                block["cons"] = csn
            elif csn[:8] == block["loc"][:8] and int(csn[8:12], 16) == int(block["loc"][8:12], 16) + 1:
                outcome = "sent_promoted"
                block["loc"] = csn
                if block["cons"] != NO_CSN:
                    block["cons"] = csn
            else:
                outcome = "beyond_local_max"
                blocked.add(rid)
            if csn in dummies:
                continue
            result["outcome_in_order"].append({"csn": csn, "outcome": outcome})
            result["against"].append(against)
            if outcome in ("sent", "sent_promoted"):
                result["sent"].append(csn)
                happen(events.pop(str(len(result["sent"])), []), log, dummies, supplier)

        # 1b.7
        refresh()
        candidates = []
        for block in blocks:
            if not block["loc"] > block["cons"]:
                continue
            if block["loc"] == block["prev"] or block["prev"] > current:
                candidates.append((current, False))
            elif block["cons"] == NO_CSN:
                candidates.append((block["min"], True))
            else:
                candidates.append((block["cons"], False))
        if not candidates:
            result["session_end"] = "no_more_updates"
            return result
        bound = smallest(candidates)
        if start > bound[0]:
            result["session_end"] = "stopped_below_session_start"
            return result
        at = position(*bound)
        if at is None:
            result["session_end"] = "stopped_reload_anchor_not_found"
            return result


def design_session(inputs):
    """What the design document would have sent, as the contract reads it (design 1 to 9)."""
    dummies = set(inputs.get("start_iteration_records", [])) - set(inputs["supplier_changelog"])
    log = sorted({*inputs["supplier_changelog"], *dummies})
    supplier = read_ruv(inputs["supplier_ruv"])
    events = dict(inputs["events_after_n_changes_sent"])
    own = str(inputs["consumer_replica_id"])
    ignore_own = inputs["consumer_rid_policy"] == "ignore"
    # design 1: every element of the consumer is a consumer RID; without CSNs it has no consumerCSN
    consumer = {rid: high for rid, (_, high) in read_ruv(inputs["consumer_ruv"]).items()}

    def local():
        return {rid: high for rid, (_, high) in supplier.items() if high}

    def following(csn):
        for other in log:
            if other > csn:
                return other
        return None

    def compute():
        """Design 2 to 5: due, anchor1, anchor2 and the first record (None: there is none to start from)."""
        due = False
        highest, lowest = [], []
        for rid, high in local().items():
            if rid == own and ignore_own:
                continue
            if rid not in consumer:
                due = True
                of_rid = [csn for csn in log if rid_of(csn) == rid and csn not in dummies]
                lowest.extend(of_rid[:1])
            elif consumer[rid] and consumer[rid] < high:
                due = True
                highest.append(consumer[rid])
        anchor1 = min(highest) if highest else None
        anchor2 = min(lowest) if lowest else None
        if anchor1 is None or (anchor2 is not None and anchor2 < anchor1):
            first = anchor2
        else:
            first = following(anchor1)
        return due, anchor1, anchor2, first

    due, anchor1, anchor2, first = compute()
    result = {
        "decision": "send",
        "anchor1": anchor1,
        "anchor2": anchor2,
        "anchor_csn": None,
        "first_sent": None,
        "sent": [],
        "outcome_in_order": [],
        "session_end": None,
        "buffer_loads": 0,
        "against": [],
        "stops": {},
    }
    if not due:
        result["decision"] = "nothing_to_send"
        return result
    if first is None:
        result["decision"] = "anchor_not_found"
        return result
    result["anchor_csn"] = first

    result["stops"] = local()
    while True:
        copy = local()
        at = log.index(first)
        buffer = log[at : at + inputs["records_per_buffer"]]
        result["buffer_loads"] += 1
        if result["buffer_loads"] == 1:
            happen(events.pop("0", []), log, dummies, supplier)
        for csn in buffer:
            current = csn
            rid = rid_of(csn)
            against = [consumer.get(rid) or None, copy.get(rid)]
            # design 7
            if csn <= consumer.get(rid, NO_CSN):
                outcome = "covered"
            elif rid not in copy:
                outcome = "unknown_rid"
            elif csn > copy[rid]:
                outcome = "beyond_local_max"
            else:
                outcome = "sent"
                consumer[rid] = csn
            if csn in dummies:
                continue
            result["outcome_in_order"].append({"csn": csn, "outcome": outcome})
            result["against"].append(against)
            if outcome == "sent":
                result["sent"].append(csn)
                happen(events.pop(str(len(result["sent"])), []), log, dummies, supplier)
        if result["sent"]:
            result["first_sent"] = result["sent"][0]
        # design 8
        due, _, _, first = compute()
        if not due:
            result["session_end"] = "no_more_updates"
            return result
        if local() == copy:
            first = following(current)
        if first is None:
            result["session_end"] = "end_of_changelog"
            return result


def missing_anchor_class(anchor, local_max, purge_point):
    """The classification of 1b.5, top to bottom."""
    if local_max is None:
        return "not_seen"
    if purge_point is None:
        return "purged" if anchor <= local_max else "not_seen"
    if anchor < purge_point:
        return "purged"
    return "missing" if anchor <= local_max else "not_seen"
