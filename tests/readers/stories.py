"""A lake whose feed is in its middle, for others to work on."""

import feed
import lake as lakes

TABLES = ("accounts", "accounts_history")


class Story:
    """A lake whose feed is in its middle."""

    def __init__(self, folder, form, mode):
        self.lake = lakes.Lake(folder / "lake", form, mode)
        self.pipeline = feed.pipeline(folder / "pipeline")
        self.files = 0
        self.feed(feed.halves()[0])

    def feed(self, files):
        """Hands over files of events, and runs the pipeline once."""
        for events in files:
            self.files += 1
            feed.write(self.pipeline.parent / "changes" / f"{self.files:03}.json", events)
        return self.lake.run(self.pipeline)

    def table(self, name):
        return next(table for table in self.lake.tables() if table.name == name)

    def rows(self, name):
        """The rows as `strandline query` gives them, sorted."""
        return sorted(self.lake.query(f"SELECT * FROM {name}"))
