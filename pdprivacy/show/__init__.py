"""What people see: prompts, notebooks, plots, reports and progress bars, all from one view of a release."""
