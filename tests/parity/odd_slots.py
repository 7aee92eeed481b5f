"""Events with slots in the odd corners of logs and text: legal, half legal and wrong."""

from __future__ import annotations

_NAMES = {
    "IN": '"c":{"U":{"u":1}',
    "WITH": 'IN,MULTI,"_slots":',
    "CONTEXT": "IN,MULTI,SLOTS}",
    "MULTI": '"_multi":[{"A":{"x":1}},{"A":{"x":2}},{"A":{"y":1}}]',
    "SLOTS": '"_slots":[{"S":{"s":1}},{"S":{"t":1}}]',
    "OUTCOMES": '"_outcomes":[{"_label_cost":1,"_a":[0,1,2],"_p":[0.5,0.25,0.25]},LAST]',
    "LAST": '{"_label_cost":-1,"_a":[2],"_p":[0.5]}',
}
"""What stands for what in the logs below."""

_LOGS = r"""
{OUTCOMES,CONTEXT}
{"_outcomes":[],CONTEXT,"a":[1]}
{CONTEXT,"_outcomes":null,"a":[1]}
{"_outcomes":null,CONTEXT,OUTCOMES}
{WITH[{"_label_cost":1,"_a":[1],"_p":[0.5],"S":{"s":1}},{"S":{"t":1}}]}}
{WITH[{"_label_cost":1,"_a":[1],"_p":[0.5],"S":{"s":1}},{"S":{"t":1}}]},"a":[1]}
{WITH[{"_label_cost":1,"_a":[1],"_p":[0.5],"S":{"s":1}},{"S":{"t":1}}]},"_outcomes":[]}
{WITH[{"_label_cost":1,"_a":[1],"_p":[0.5],"S":{"s":1}},{"S":{"t":1}}]},OUTCOMES}
{WITH[{"_label_cost":1,"_a":[1],"_p":[0.5],"_inc":[1,2]},{"S":{"t":1}}]},"_outcomes":[{},LAST]}
{CONTEXT,"_outcomes":[{},LAST]}
{CONTEXT,"_outcomes":[{"_a":[0],"_p":[0.5]},LAST]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":0,"_p":0.5}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[null,1],"_p":[null,0.5]}]}
{WITH[{"_inc":null},{"_inc":[null,2]}]},OUTCOMES}
{WITH[{"_inc":0},{"_inc":[2,1]}]},OUTCOMES}
{WITH[{"_inc":[]},{"_inc":[2,1]}]},OUTCOMES}
{WITH[{"_inc":[9]},{"_inc":[2,1]}]},OUTCOMES}
{WITH[{"_inc":["1"]},{"_inc":[2,1]}]},OUTCOMES}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":["1"],"_p":[0.5]}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[-1],"_p":[0.5]}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1.5],"_p":[0.5]}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1],"_p":[0]}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1],"_p":[-0.5]}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1],"_p":[2]}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1],"_p":["NaN"]}]}
{CONTEXT,"_outcomes":[{"_label_cost":"NaN","_a":[1],"_p":[0.5]}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1],"_a":[2],"_p":[0.5,0.5]}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1],"_p":[0.5]},{"_label_cost":1,"_a":[1],"_p":[0.5]}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[7],"_p":[0.5]}]}
{CONTEXT,"_outcomes":[{},{},{}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1],"_p":[0.5]},null]}
{CONTEXT,"_outcomes":[1]}
{CONTEXT,"_outcomes":{}}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1],"_p":[0.5],"S":{"z":1},"w":2}]}
{CONTEXT,"_outcomes":[{"_label_cost":1,"_a":[1],"_p":[0.5],"_tag":"hi"}]}
{WITH[{"S":{"s":1}},null,{"S":{"t":1}}]},OUTCOMES}
{WITH[1,{"S":{"s":1}}]},OUTCOMES}
{IN,MULTI},"_outcomes":[]}
{WITH[]},"_outcomes":[]}
{WITH[]},"_outcomes":[{"_label_cost":1,"_a":[1],"_p":[0.5]}]}
{IN,SLOTS,MULTI},OUTCOMES}
{IN,MULTI,MULTI,SLOTS},OUTCOMES}
{WITH[{"S":{"s":1}},{"S":{"t":1}}],MULTI},OUTCOMES}
{WITH[{"_multi":[{"A":{"x":1}}]},{"S":{"t":1}}]},OUTCOMES}
{WITH[{"_slots":[]},{"S":{"t":1}}]},OUTCOMES}
{"c":{"U":{"u":1,SLOTS},MULTI},OUTCOMES}
{CONTEXT,OUTCOMES,"_labelIndex":0}
{"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,CONTEXT,OUTCOMES}
{"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,IN,MULTI},"a":[1]}
{"_label_cost":-1,"_label_probability":0.5,"_label_Action":3,IN,MULTI},"a":[1]}
{"_label_cost":-1,"_label_probability":0.5,"_label_Action":5,IN,MULTI},"a":[1]}
{"_label_cost":-1,IN,MULTI},"a":[1]}
{CONTEXT,OUTCOMES,"pdrop":0.5}
{CONTEXT,OUTCOMES,"pdrop":1}
{CONTEXT,OUTCOMES,"_skipLearn":true}
{WITH[{"S":{"s":1}},{"S":{"t":1}}],"L":{"l":1},"m":2},OUTCOMES}
{CONTEXT,OUTCOMES
{WITH[{"_tag":"a","S":{"s":1}},{"S":{"t":1}}]},OUTCOMES}
{WITH[{"_text":"a b","S":{"s":1}},{"x":true,"y":"q"}]},OUTCOMES}
"""

_SLOTS = r"""
ccb slot 0:1:0.5;ccb slot 1:1:0.5 |S t
ccb slot 0:x:0.5 |S s
ccb slot 0:1:x |S s
ccb slot a:1:0.5 |S s
ccb slot 0:1:2 |S s
ccb slot 0:1:0 |S s
ccb slot 0:1:-1 |S s
ccb slot 0:nan:0.5 |S s
ccb slot 0:inf:0.5 |S s
ccb slot 0:1:0.5 a,b |S s
ccb slot 0:1:0.5 , |S s
ccb slot 0:1:0.5 -1,0 |S s
ccb slot 0:1:0.5 0.5,1 |S s
ccb slot 0,1 0:1:0.5 |S s
ccb slot 0:1:0.5   0,1   |S s
ccb slot 0:1:0.5,1:0.5, |S s
ccb slot 0:1:0.5,a:0.5 |
ccb slot 0:1:1,1:x |
ccb slot 0:1:0.5: |
ccb slot 4294967296:1:0.5 |
ccb slot 7:1:0.5 |
ccb slot +1:+1:+0.5 |
ccb slot 0:1:0.5 'x|S s;ccb slot x|S t
ccb slot 0:1:0.5|S s
ccb slot '0,1 |S s
ccb slot 0:1:0.5 |S s:nan t:x u:inf
ccb slot 0:1:0.5 |S s\r
ccb  slot |S s
 ccb slot 0:1:0.5 |S s
"""

_STOPPING_SLOTS = r"""
ccb slot 0:1:0.5 0 1 |S s
ccb slot 0 1 2 |S s
ccb slot \t0:1:0.5 |S s
CCB slot 0:1:0.5 |S s
ccb slot 0:1:0.5,1:0.1 |
ccb slot 0:1:0.5:1 |
ccb slot 0:1 |
ccb slot 0:1:0.5,1:1:0.5 |
ccb slot 0:1:1 1:1:1 |
ccb slot 0::0.5 |
ccb slot : |
ccb |S s
slot |S s
ccb slots |S s
ccb slot|S s
"""


def _logs(table: str) -> list[str]:
    for _ in range(2):
        for name, what in _NAMES.items():
            table = table.replace(name, what)
    return table.split("\n")[1:-1]


def _texts(table: str) -> list[str]:
    """Events of slots, which are separated by semicolons here."""
    lines = "ccb shared |U u\nccb action |A x\nccb action |A y\nccb action |A z\n"
    slots = [event.replace("\\t", "\t").replace("\\r", "\r").split(";") for event in table.split("\n")[1:-1]]
    return [lines + "".join(f"{slot}\n" for slot in event) + "\n" for event in slots]


ODD_LOGS = _logs(_LOGS)
"""Lines that VW reads or skips."""

ODD_TEXTS, STOPPING_TEXTS = _texts(_SLOTS), _texts(_STOPPING_SLOTS)
"""The same of text, and events at which it stops."""

(GOOD_LOG,) = _logs("\n{CONTEXT,OUTCOMES}\n")
(GOOD_TEXT,) = _texts("\nccb slot 0:1:0.5 |S s;ccb slot 1:1:0.5 |S t\n")
