"""Settings of COMET."""

from pathlib import Path

from pydantic import Field

from docmt.settings import Settings


class CometSettings(Settings):
    """COMET, which is computed when this section is given."""

    checkpoint: str
    """The checkpoint: a `.ckpt` file, or the folder that contains `checkpoints/model.ckpt`."""
    program: str = "comet-score"
    """The program, or its path in another environment (`workflow/envs/comet.yml`)."""
    context: int = Field(default=0, ge=0)
    """Previous sentences that are given before each sentence: 0 is COMET, 2 the document variant of its authors."""
    batch_size: int = Field(default=16, ge=1)
    """Sentences that are scored together."""
    gpus: int = Field(default=0, ge=0, le=1)
    """1 computes on a GPU."""

    @property
    def model_file(self) -> str:
        """The file of the checkpoint."""
        path = Path(self.checkpoint)
        return self.checkpoint if path.suffix == ".ckpt" else str(path / "checkpoints" / "model.ckpt")
