"""The two ways in which a verb ends badly."""


class LabError(Exception):
    """Something went wrong; the text is one line for people.  Exit code 1."""

    exit_code = 1


class Refusal(LabError):
    """The lab cannot run here or now, and nothing was changed.  Exit code 3."""

    exit_code = 3
