"""A runner for unittest that prints TAP."""
import unittest


class Tap(unittest.TestResult):
    """Results as TAP lines; what went wrong stands behind them as comments."""

    def __init__(self):
        super().__init__()
        self.bad = []

    def startTest(self, test):
        super().startTest(test)
        self.bad = []

    def note(self, test, error):
        self.bad.append(f"{test}\n{self._exc_info_to_string(error, test)}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.note(subtest, err)

    def stopTest(self, test):
        skipped = [reason for skipped, reason in self.skipped if skipped is test]
        name = test.id().split(".test_", 1)[1].replace("test_", "", 1)
        if skipped:
            print(f"ok {self.testsRun} # SKIP {name}: {skipped[0]}")
        else:
            print(f"{'not ' if self.bad else ''}ok {self.testsRun} - {name}")
        for text in self.bad:
            print("\n".join(f"# {line}" for line in text.splitlines()))
        super().stopTest(test)
