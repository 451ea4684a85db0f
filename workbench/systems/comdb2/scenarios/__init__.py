"""The what-if kinds of Comdb2: their inputs as models, their answers by `rules`. A kind is one line here."""

from workbench.model import Kind
from workbench.systems.comdb2.scenarios import logs, registry

KINDS = {
    "comdb2.register_replicant": Kind(
        "If this node registers now, whom is it offered, and why not the others?",
        registry.Registration,
        registry.registered,
    ),
    "comdb2.min_log_file": Kind("Which file pins log deletion?", registry.LogDeletion, registry.log_deletion),
    "comdb2.hung_count": Kind("How many replicants does a source call stuck?", registry.Late, registry.late),
    "comdb2.hung_self_check": Kind(
        "Does a replicant call itself inactive, and is it behind?", logs.SelfChecked, logs.self_checked
    ),
    "comdb2.range_overlap": Kind("Can this source serve this replicant?", logs.Ranges, logs.overlapping),
    "comdb2.allowed_source": Kind("May one class of machines pull from another?", logs.Classes, logs.allowed),
    "comdb2.lsn_text": Kind("How does the server read this LSN?", logs.LsnText, logs.lsn_read),
}
"""Kind of case -> what it asks for, and what answers it."""
