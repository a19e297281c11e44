"""Reads every table of every example, in each format and write mode, with Spark. Usage: matrix_of_spark.py [FORMAT/MODE ..]"""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import matrix
import session


def main():
    verdicts = matrix.Verdicts()
    with tempfile.TemporaryDirectory(prefix="strandline-spark-") as scratch:
        spark = session.start(scratch)

        def read(table):
            return session.beside(spark, table.lake).table(session.identifier(table)).toArrow()

        for form, mode in matrix.chosen(sys.argv[1:]):
            matrix.check(verdicts, form, mode, {form: {"Spark": read}})
        spark.stop()
    verdicts.end()


main()
