"""Types, as users have them: with mypy --strict, and without the plug-in that we use ourselves."""

from pathlib import Path

from mypy import api

ROOT = Path(__file__).parents[2]


def test_what_users_type_has_types(tmp_path):
    """README's calls were refused: lists, the plan of a result, the price of its certificate."""
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n")
    script = ROOT / "tests" / "support" / "typed_script.py"
    options = ["--strict", "--config-file", str(config), "--follow-imports", "silent"]
    cache = ["--cache-dir", str(ROOT / ".mypy_cache" / "as-users")]  # half a minute without
    told, faults, code = api.run([*options, *cache, str(script)])
    assert (told, faults, code) == ("Success: no issues found in 1 source file\n", "", 0)
