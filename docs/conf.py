"""How the pages are built: ``python -m sphinx -W -b html docs docs/_build``, from the root.

Nothing is fetched from a network, neither at build nor by a browser. Commands and code on the pages
are run at build; outputs of the notebooks are those that are committed, for `.ci/run` runs them.
"""

import os
import shutil
import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}  # of the commands that pages run
# As they were committed, outputs and all; their links to each other need them in one folder.
shutil.copytree(HERE.parent / "notebooks", HERE / "tutorials", dirs_exist_ok=True)

project = "optsched"
author = "The optsched developers"
copyright = author
version = release = installed("optsched")
language = "en-GB"

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "commands",
    "generated",
    "tidy",
]
exclude_patterns = ["_build", "figures", "jupyter_execute", "**.ipynb_checkpoints"]
suppress_warnings = [
    "mystnb.unknown_mime_type",  # of controls; a picture stands beside them
    "ref.python",  # types in signatures are short, and two packages have a `Finding` or a `Job`
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist", "smartquotes"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / ".jupyter_cache")
nb_execution_excludepatterns = ["tutorials/*"]
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 88  # longer ones have a parameter a line
default_role = "py:obj"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

mathjax_path = "mathjax/tex-svg-full.js"  # version 3.2.2, one file with its fonts
mathjax3_config = {"tex": {"packages": {"[+]": ["textmacros"]}}}  # as LaTeX has it: \\text{a\\_b}

html_theme = "pydata_sphinx_theme"
html_title = "optsched"
html_static_path = ["_static"]
html_css_files = ["optsched.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "optsched"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"
