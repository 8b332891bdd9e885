"""Settings of the neural parser."""

from typing import Literal

from pydantic import Field

from docmt.settings import Settings


class NeuralSettings(Settings):
    """The network and its training."""

    members: int = Field(default=4, ge=1)
    """Networks with different seeds, whose log probabilities are averaged."""
    layers: Literal["upper", "both"] = "both"
    """Word states that the network reads: of the segmenter's upper BiLSTM, or of both."""
    queries: int = Field(default=3, ge=0)
    """Learnt queries that weight the words of an EDU."""
    word_width: int = Field(default=24, ge=1)
    """Width of the embeddings of the first, second and last word of an EDU."""
    min_word_count: int = Field(default=8, ge=1)
    """Words seen less often in these places have no embedding of their own."""
    word_dropout: float = Field(default=0.15, ge=0, lt=1)
    """Share of these words that are treated as unknown."""
    edu_width: int = Field(default=160, ge=1)
    """Width of an EDU's own vector."""
    document_width: int = Field(default=80, ge=1)
    """Width of each direction of the BiLSTM over the EDUs of a document."""
    hidden_width: int = Field(default=128, ge=1)
    """Width of the hidden layers of both classifiers."""
    feature_width: int = Field(default=64, ge=1)
    """Width of the vector of a structural feature."""
    pair_width: int = Field(default=24, ge=1)
    """Width in which two EDUs are compared."""
    epochs: int = Field(default=12, ge=1)
    """Passes over the training documents, per member."""
    documents_per_batch: int = Field(default=6, ge=1)
    """Documents per update."""
    learning_rate: float = Field(default=2.5e-3, gt=0)
    """Highest learning rate of Adam; it falls linearly to 0."""
    weight_decay: float = Field(default=1e-3, ge=0)
    """Decoupled weight decay."""
    input_dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout on pooled word states."""
    hidden_dropout: float = Field(default=0.25, ge=0, lt=1)
    """Dropout on encoded EDUs and on the hidden layers of the classifier of actions."""
    feature_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of structural features that the classifier of actions does without."""
    relation_dropout: float = Field(default=0.45, ge=0, lt=1)
    """Dropout on the hidden layers of the classifier of relations."""
    relation_feature_dropout: float = Field(default=0.3, ge=0, lt=1)
    """Share of structural features that the classifier of relations does without."""
    paragraph_dropout: float = Field(default=0.35, ge=0, le=1)
    """Share of training documents whose paragraphs are hidden in an epoch, so that the parser also works without."""
    label_smoothing: float = Field(default=0.05, ge=0, lt=1)
    """Probability that the loss spreads over all classes."""
    average_decay: float = Field(default=0.98, ge=0, lt=1)
    """Decay per update of the running average of the weights, which is what is kept."""
