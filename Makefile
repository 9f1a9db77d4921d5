# The loops of CONTRIBUTING.md, by the commands that .ci/run runs.

.PHONY: fast check rest all style types tests

fast:  ## some seconds: the tests marked fast
	pytest -m fast

check: style types tests  ## some minutes: style, types and the default tests

rest:  ## half an hour: the long tests
	pytest --rest

all:  ## everything, from a clean copy, with every Python of this machine
	.ci/run

style:
	ruff check .
	ruff format --check .

types:
	mypy

tests:
	pytest
