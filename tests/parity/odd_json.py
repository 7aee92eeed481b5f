"""Well-formed lines of JSON in the odd corners of the format: single lines, contexts with actions, logs.

Not in the tables, because exact mode does not reproduce them: a namespace whose first byte is not ASCII (the
VW dies), a second ``_tag`` (VW joins both), and a label without a probability (it learns NaN).
"""

from __future__ import annotations

_MEMBERS = r"""
"caf\u00e9":{"na\u00efve":1,"日":2}
"u":{"\ud83d\ude00":1,"😀":2,"x":"\ud83d\ude00"}
"a\"b\\c\/d":{"q\"\n\t":1,"\b\f\r":"\b\f\r"}
"n":{"z\u0000y":1,"s":"end\u0000 more"}
"A":{"a\u0062":"\u0063d"}
"":{"":1,"x":""}
" ":{" ":1,"x y":" two  words "}
"a|b:c":{"p|q:r":"s|t:u"}
"A":{"x":1,"x":2,"x":"a","x":"b"}
"A":{"x":1},"B":{"y":1},"A":{"z":1}
"A":{"x":1},"Able":{"x":2},"A":{"x":3}
"A":{"B":{"A":{"x":1},"y":2},"z":3}
"A":{"A":{"A":{"A":{"A":{}}}}}
"A":{"x":1,"B":{"y":1},"z":1,"B":{"w":1},"v":1}
"A":{},"B":[],"C":[{}],"D":[{},{}]
"v":[1,2.5,0,-3,1e-2]
"v":[0,0,1],"w":[null,1,null,2]
"v":[{"a":1},{"a":2},{"b":"c"}],"w":[1,{"a":2},3]
"v":[{"a":[1,2],"b":[{"c":3}]}]
"A":{"v":[1,2]},"B":{"v":[1,2]},"v":[1,2]
"x":1,"y":"s","t":true,"f":false,"n":null
"12":{"7":1,"007":2,"-3":3,"4294967296":4,"x":"12"}
"12":1,"0":"7"
"N":{"a":-0,"b":-0.0,"c":0e5,"d":0.0e-5,"e":1E+2,"f":1e00,"g":1.0}
"N":{"a":4294967295,"b":4294967296,"c":18446744073709551615,"d":18446744073709551616}
"N":{"a":-1,"b":-2147483648,"c":-9223372036854775808,"d":-9223372036854775809}
"N":{"a":0.1,"b":0.30000001,"c":3.14159265358979323846,"d":123456789012.5,"e":16777217}
"N":{"a":1e-45,"b":1e-46,"c":1e-38,"d":1e18,"e":2.5e-308,"f":1e-400}
"N":{"a":0.00000000000000000000000000000000000001,"b":12345678901234567890123456789e-28}
"_text":"some words here"
"_text":"","_text":" a:b  c|d "
"_text":"caf\u00e9 caf\u00e9"
"A":{"_text":"x y x","z":1}
"_ignored":{"a":"}","b":[1,{"c":"]"}]},"x":1
"_":1,"__":"a","_x":{"y":[]},"z":1
"_tag":"t","x":1
"_tag":"two words"
"A":{"_tag":"inner","x":1}
 "A" : { "x" : 1 , "y"	:	"s" } , "v" : [ 1 , 2 ]
"A":{"longer than sixteen bytes by far":"and so is its value, of course"}
"""
"""Members of an event; each event has one of these lines."""

_LABELS = r"""
"_label":1
"_label":"1"
"_label":"1 2"
"_label":"0.5 2 -1"
"_label":""
"_label":-0.0
"_label":1e-3
"_label":{"Label":1,"Weight":2,"Initial":0.5}
"_label":{"label":1,"weight":2,"initial":0.5}
"_label":{}
"_label":{"Weight":2}
"_label":{"Initial":1}
"_label_Label":1,"_label_Weight":0.5
"_label_label":1,"_label_initial":0.5
"_label":1,"_label":2
"_label_Label":1,"_label_Label":2
"""

_COSTS = r"""
"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0
"_label_Cost":-1,"_label_Probability":0.5,"_label_Action":2,"_labelIndex":1
"_labelIndex":1,"_label_Action":2,"_label_probability":0.5,"_label_cost":-1
"_label_cost":0,"_label_probability":1,"_label_Action":1,"_labelIndex":0
"_label_cost":-0.0,"_label_probability":1e-3,"_label_Action":1,"_labelIndex":0
"_label_cost":-1,"_label_probability":0.5,"_labelIndex":1
"_label_probability":0.5,"_label_Action":1,"_labelIndex":0
"_label_cost":-1,"_label_cost":-0.5,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0
"_labelIndex":0
"_label_cost":-1,"_label_probability":0.5,"_label_Action":2,"_labelIndex":0
"_label_cost":-1,"_label_probability":2,"_label_Action":1,"_labelIndex":0
"_label_cost":-1,"_label_probability":-0.5,"_label_Action":1,"_labelIndex":0
"_label_cost":-1,"_label_probability":0,"_label_Action":1,"_labelIndex":0
"""

_STOPPING_COSTS = r"""
"_label_cost":"-1","_label_probability":"0.5","_label_Action":1,"_labelIndex":0
"_label_cost":-1,"_label_probability":0.5,"_label_Action":1
"_label_cost":-1
"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":7
"""

_LOGS = r"""
{COST,"a":[1,2],"p":[0.5,0.5],CONTEXT}
{COST,"EventId":"e\u0041","Timestamp":"2026-01-01T00:00:00Z","Version":"1","a":[1,2],CONTEXT,"VWState":{"m":"x/y"}}
{COST,CONTEXT,"_label_cost":-1,"a":[2]}
{CONTEXT,COST}
{CONTEXT,"a":[1,2],COST,"p":[0.5,0.5]}
{COST,CONTEXT,"pdrop":0.5}
{COST,"pdrop":0.5,CONTEXT}
{COST,"pdrop":1,CONTEXT}
{COST,"pdrop":0,CONTEXT}
{COST,"_skipLearn":true,CONTEXT}
{COST,"_skipLearn":false,CONTEXT}
{COST,"_original_label_cost":-0.25,CONTEXT}
{"_original_label_cost":-0.25,COST,CONTEXT}
{COST,"o":[{"EventId":"e","v":-1}],CONTEXT}
{COST,"x":{"c":{"y":[1,{"z":"]}"}]}},CONTEXT}
{COST,"a":[],"p":[],CONTEXT}
{CONTEXT}
{COST}
{}
{COST,"c":{}}
{COST,"c":{"_multi":[]}}
{COST,"c":{"U":{"u":1},"_multi":[{},{}]}}
{COST,"c":{"_multi":[{"A":{"x":1}},{"A":{"x":2}}],"U":{"u":1}}}
{COST,"c":{"U":{"u":1},"_multi":[{"A":{"x":1}},{"A":{"x":2}}],"V":{"v":1}}}
{COST,"c":{"U":{"u":1},"_multi":[{"A":{"x":1},"_tag":"a"},{"_tag":"b","A":{"x":2}}],"_tag":"shared"}}
{COST,"c":{"_multi":[{"A":{"x":1}}],"_multi":[{"A":{"x":2}}]}}
{COST,CONTEXT,CONTEXT}
 { COST , "a" : [ 1 , 2 ] , CONTEXT }
"""

_CONTEXT = '"c":{"U":{"u":1},"_multi":[{"A":{"x":1}},{"A":{"x":2}}]}'
_ACTIONS = '"_multi":[{"A":{"x":1}},{"A":{"x":2}}]'
_COST = '"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0'


def _rows(table: str) -> list[str]:
    return table.split("\n")[1:-1]


GOOD_JSON = {
    "--json": '{"_label":1,"A":{"x":1}}',
    "--json --cb_explore_adf": f'{{{_COST},"U":{{"u":1}},{_ACTIONS}}}',
    "--dsjson --cb_explore_adf": f"{{{_COST},{_CONTEXT}}}",
}
"""An event of each kind, by the flags that read it."""

ODD_JSON = {
    "--json": [
        *(f'{{"_label":1,{members}}}' for members in _rows(_MEMBERS)),
        *(f'{{{members},"_label":1}}' for members in _rows(_MEMBERS)[:2]),
        *(f'{{{label},"A":{{"x":1}}}}' for label in _rows(_LABELS)),
        '{"A":{"x":1}}',
        "{}",
    ],
    "--json --cb_explore_adf": [
        *(f"{{{_COST},{members},{_ACTIONS}}}" for members in _rows(_MEMBERS)),
        *(
            f'{{{_COST},"U":{{"u":1}},"_multi":[{{{members}}},{{"A":{{"x":1}}}}]}}'
            for members in _rows(_MEMBERS)
        ),
        *(f'{{{label},"U":{{"u":1}},{_ACTIONS}}}' for label in _rows(_COSTS)),
        f'{{"U":{{"u":1}},{_ACTIONS}}}',
    ],
    "--dsjson --cb_explore_adf": [
        *(line.replace("COST", _COST).replace("CONTEXT", _CONTEXT) for line in _rows(_LOGS)),
        *(f"{{{label},{_CONTEXT}}}" for label in _rows(_COSTS)),
    ],
}
"""Lines of each kind."""

STOPPING_JSON = [f'{{{label},"U":{{"u":1}},{_ACTIONS}}}' for label in _rows(_STOPPING_COSTS)]
"""Contexts with a wrong label, at which VW stops."""
