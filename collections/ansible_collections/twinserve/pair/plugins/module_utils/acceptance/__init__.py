"""What a release promises of its API, one named check each; standard library only, to run anywhere."""
