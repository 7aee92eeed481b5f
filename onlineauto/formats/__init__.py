"""Read events: turn bytes into Blocks.

* `onlineauto.formats.text_reader` reads VW text, strictly or exactly as VW 9.11.9 does;
* `onlineauto.formats.json_reader` reads VW's JSON and decision-service logs;
* `onlineauto.formats.sources.source` opens files, pipes and bytes, and unpacks compressed ones;
* `onlineauto.formats.lines.diagnostics` describes problems of the input.
"""
