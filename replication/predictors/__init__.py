"""Methods and predictors that a profile can name, a user's own ones among them, and the laws that predictors obey."""
