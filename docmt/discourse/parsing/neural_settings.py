"""Settings of the neural parser."""

from pydantic import Field

from docmt.settings import Settings


class NeuralSettings(Settings):
    """The network and its training."""

    members: int = Field(default=4, ge=1)
    """Networks with different seeds, whose log probabilities are averaged."""
    queries: int = Field(default=3, ge=0)
    """Learnt queries that weight the words of an EDU."""
    edu_width: int = Field(default=192, ge=1)
    """Width of an EDU's own vector."""
    document_width: int = Field(default=96, ge=1)
    """Width of each direction of the BiLSTM over the EDUs of a document."""
    hidden_width: int = Field(default=192, ge=1)
    """Width of the hidden layers of both classifiers."""
    feature_width: int = Field(default=64, ge=1)
    """Width of the vector of a structural feature."""
    pair_width: int = Field(default=24, ge=1)
    """Width in which two EDUs are compared."""
    epochs: int = Field(default=14, ge=1)
    """Passes over the training documents, per member."""
    documents_per_batch: int = Field(default=4, ge=1)
    """Documents per update."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Highest learning rate of Adam; it falls linearly to 0."""
    weight_decay: float = Field(default=1e-3, ge=0)
    """Decoupled weight decay."""
    input_dropout: float = Field(default=0.4, ge=0, lt=1)
    """Dropout on pooled word states."""
    hidden_dropout: float = Field(default=0.4, ge=0, lt=1)
    """Dropout on encoded EDUs and hidden layers."""
    feature_dropout: float = Field(default=0.2, ge=0, lt=1)
    """Share of structural features that are left out."""
    paragraph_dropout: float = Field(default=0.35, ge=0, le=1)
    """Share of training documents whose paragraphs are hidden in an epoch, so that the parser also works without."""
    label_smoothing: float = Field(default=0.05, ge=0, lt=1)
    """Probability that the loss spreads over all classes."""
    average_decay: float = Field(default=0.98, ge=0, lt=1)
    """Decay per update of the running average of the weights, which is what is kept."""
