"""One module for each lesson. Its function ``run`` gets a sandbox, shows its steps and returns its facts."""
