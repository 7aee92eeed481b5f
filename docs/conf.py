"""How Sphinx builds the documentation: ``.ci/docs``."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "_extensions"))

project = "onlineauto"
author = copyright = "the authors of onlineauto"  # noqa: A001 - Sphinx reads this name
version = release = version_of("onlineauto")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "from_code",
]
exclude_patterns = ["_build"]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = True

autodoc_default_options = {
    "members": True,
    "inherited-members": True,
    "member-order": "bysource",
}
autodoc_typehints = "none"  # the docstrings say what is taken and returned
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False
default_role = "code"
smartquotes = False  # two dashes are an option here
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

html_theme = "pydata_sphinx_theme"
html_title = "onlineauto"
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["own.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, object] = {
    "logo": {"text": "onlineauto"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
# Where the site is, with a folder for each version, and `versions.json`, which lists them for the switcher.
if site := os.environ.get("ONLINEAUTO_DOCS_URL", ""):
    html_theme_options |= {
        "switcher": {"json_url": f"{site}/versions.json", "version_match": version},
        "check_switcher": False,  # the list is published after the pages
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    }
html_sidebars = {"index": [], "glossary": []}

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False
