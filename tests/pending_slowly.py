"""The pending list a second time, slow and obvious: integers, flat tables, the words of the reference, nothing shared."""

from __future__ import annotations

from typing import Any

from workbench.replication.changelog.rules.pending import Replica


def order(text: str) -> tuple[int, int, int, int]:
    return int(text[:8], 16), int(text[8:12], 16), int(text[12:16], 16), int(text[16:], 16)


class Slow:
    """One table of all waiting CSNs and one of all elements; looked through from end to end at every question."""

    def __init__(self, replicas: list[Replica], rules: str) -> None:
        self.rules, self.local = rules, [int(replica.local_rid) for replica in replicas]
        self.waiting: list[dict[str, Any]] = []
        self.low: dict[tuple[int, int], str | None] = {}
        self.high: dict[tuple[int, int], str | None] = {}
        self.thread: dict[Any, dict[str, Any]] = {}
        for number, replica in enumerate(replicas):
            for rid, span in replica.vector.items():
                self.low[number, int(rid)], self.high[number, int(rid)] = span.min, span.max

    def list_of(self, where: tuple[int, int]) -> list[dict[str, Any]]:
        return sorted((row for row in self.waiting if row["where"] == where), key=lambda row: order(row["csn"]))

    def step(self, op: str, thread: Any, replica: int, text: str) -> str:
        if op == "end":
            self.thread.pop(thread, None)
            return "ok"
        where = (replica, order(text)[2])
        if op == "begin":
            return self.begin(thread, replica, text, where)
        if self.rules != "primary_csn":
            return self.old(op, where, text)
        context = self.thread.get(thread)
        primary = context is not None and context["prim"] == text and context["home"] == replica
        if op == "cancel" and not primary:
            before = len(self.waiting)
            self.waiting = [row for row in self.waiting if not (row["where"] == where and row["csn"] == text)]
            return "ok" if len(self.waiting) < before else "notfound"
        if not primary:
            return "ok"
        others = [(number, self.local[number]) for number in context["others"]]
        lists = [where, *([(replica, self.local[replica])] if self.local[replica] != where[1] else []), *others]
        if op == "cancel":
            result = "ok"
            for number, one in enumerate(lists):
                if number and one[1] == 65535:
                    continue
                result = "ok" if one in self.high else "notfound"
                self.waiting = [row for row in self.waiting if row["where"] != one or not self.mine(row, context)]
            return result
        for one in lists:
            if one in self.high and not self.update(one, lambda row: self.mine(row, context)):
                return "covered"
        return "ok"

    def begin(self, thread: Any, replica: int, text: str, where: tuple[int, int]) -> str:
        self.low.setdefault(where, None)
        high = self.high.setdefault(where, None)
        if high and order(text) <= order(high):
            return "covered"
        context = self.thread.get(thread)
        if context is None:
            context = {"prim": text, "home": replica, "others": []}
            self.thread[thread] = context
        elif context["home"] != replica and context["others"].count(replica) == 0:
            context["others"] = context["others"] + [replica]
        if any(order(row["csn"]) >= order(text) for row in self.list_of(where)):
            del self.thread[thread]
            return "covered"
        row = {"where": where, "csn": text, "done": False, "prim": context["prim"], "home": context["home"]}
        self.waiting.append(row)
        return "ok"

    @staticmethod
    def mine(row: dict[str, Any], context: dict[str, Any]) -> bool:
        return row["home"] == context["home"] and (row["csn"] == context["prim"] or row["prim"] == context["prim"])

    def old(self, op: str, where: tuple[int, int], text: str) -> str:
        found = [row for row in self.list_of(where) if row["csn"] == text]
        if op == "cancel":
            self.waiting = [row for row in self.waiting if row not in found]
        elif where not in self.high:
            return "ok"
        elif found and not self.update(where, lambda row: row["csn"] == text):
            return "covered"
        return "ok" if found else "notfound"

    def update(self, where: tuple[int, int], mine: Any) -> bool:
        for row in self.list_of(where):
            row["done"] = row["done"] or mine(row)
        popped: list[str] = []
        for row in self.list_of(where):
            if row["done"]:
                popped.append(row["csn"])
                self.waiting.remove(row)
            elif self.rules != "since_359":
                break
        if popped and where[1] != self.local[where[0]] and self.low[where] is None:
            self.low[where] = popped[0]
        high = self.high[where]
        if popped and (high is None or order(high) < order(popped[-1])):
            self.high[where] = popped[-1]
            return True
        return not popped

    def state(self) -> list[dict[str, Any]]:
        return [
            {
                str(rid): (self.low[number, rid], self.high[number, rid], len(self.list_of((number, rid))))
                for place, rid in self.high
                if place == number
            }
            for number in range(len(self.local))
        ]
