"""Rows as text and the files that hold them."""
import math
import os
import stat
import tempfile
import unittest
from unittest import mock

from pytorch.errors import UsageError
from pytorch.rows import append_row, number_text, read_rows, start_rows, try_path, write_csv

from .fixtures import COLUMNS


class Files(unittest.TestCase):
    ROW = {"schema": 2, "case": 'a,"b"', "flags": "x\ny", "median_us": 0.1, "p5_us": math.nan,
           "samples": 30, "bytes": None}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "rows.csv")

    def write(self, path, rows):
        """As the program does: gathered in a file, then written."""
        gathered = os.path.join(self.folder, "gathered")
        start_rows(gathered, COLUMNS)
        for row in rows:
            append_row(gathered, row)
        write_csv(path, read_rows(gathered))
        os.unlink(gathered)

    def test_a_row_reads_back(self):
        self.write(self.path, [self.ROW])
        with open(self.path, newline="", encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith("schema,suite,case"))
        self.assertNotIn("\r", text)
        row, = read_rows(self.path)
        self.assertEqual(list(row), COLUMNS)
        self.assertEqual((row["case"], row["flags"], row["median_us"], row["p5_us"],
                          row["samples"], row["bytes"]), ('a,"b"', "x\ny", "0.1", "", "30", ""))

    def test_a_file_keeps_its_old_rows_when_writing_fails(self):
        self.write(self.path, [self.ROW])
        with open(self.path, encoding="utf-8") as file:
            before = file.read()
        with mock.patch.object(os, "replace", side_effect=OSError(28, "No space left")):
            self.assertRaises(OSError, write_csv, self.path, read_rows(self.path))
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(os.listdir(self.folder), ["rows.csv"])

    def test_a_link_stays_a_link(self):
        link = os.path.join(self.folder, "link.csv")
        os.symlink(self.path, link)
        self.write(link, [self.ROW])
        self.assertTrue(os.path.islink(link))
        self.assertEqual(len(read_rows(self.path)), 1)

    def test_a_device_is_written_to_and_not_replaced(self):
        try_path("/dev/null")
        self.write("/dev/null", [self.ROW])
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_paths_that_cannot_be_written_are_refused_before_measuring(self):
        for path in (self.folder, os.path.join(self.folder, "none", "x.csv"), ""):
            self.assertRaises(UsageError, try_path, path)

    def test_numbers_as_text(self):
        texts = [number_text(value) for value in (704.0, 0.1, 1e-5, 1 / 3, -0.0, math.inf)]
        self.assertEqual(texts, ["704", "0.1", "1e-05", "0.3333333333333333", "-0", ""])
