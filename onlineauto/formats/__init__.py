"""Formats: bytes to Blocks.

* `onlineauto.formats.text_reader` reads VW text, as VW 9.11.9 does or strictly;
* `onlineauto.formats.json_reader` reads VW's JSON and decision-service logs;
* `onlineauto.formats.sources.source` opens where it comes from;
* `onlineauto.formats.lines.diagnostics` says what is wrong with it.
"""
