"""Settings of the EDU segmenter."""

from pydantic import Field

from docmt.settings import Settings


class NetworkSettings(Settings):
    """Sizes of the network."""

    word_width: int = Field(100, ge=1)
    """Width of the embeddings of lower-cased words."""
    character_width: int = Field(25, ge=1)
    """Width of the embeddings of characters."""
    character_filters: int = Field(60, ge=1)
    """Filters of the convolution over the characters of a word."""
    shape_width: int = Field(10, ge=1)
    """Width of the embeddings of word shapes (capitals, digits, punctuation)."""
    lower_width: int = Field(150, ge=1)
    """Width of each direction of the lower BiLSTM."""
    upper_width: int = Field(120, ge=1)
    """Width of each direction of the upper BiLSTM."""
    attention_window: int = Field(5, ge=0)
    """The restricted attention sees so many words to the left and to the right."""
    head_width: int = Field(100, ge=1)
    """Width of the two sides of the attention that learns the heads of words."""


class AuxiliaryWeights(Settings):
    """What the losses on syntax count beside the loss of the segmenter, all per word; only in training."""

    pos: float = Field(0.05, ge=0)
    """Part of speech of each word."""
    relation: float = Field(0.05, ge=0)
    """Dependency relation of each word."""
    head: float = Field(0.05, ge=0)
    """Head of each word."""
    opening: float = Field(0.05, ge=0)
    """Dependency relation of the largest phrase that begins with each word."""


class SegmenterTrainingSettings(Settings):
    """A recipe."""

    epochs: int = Field(20, ge=1)
    """Passes over the training sentences."""
    max_batch_words: int = Field(600, ge=1)
    """Most words of a batch; one longer sentence makes a batch of its own."""
    learning_rate: float = Field(2e-3, gt=0)
    """Learning rate of Adam after the warm-up; it falls to a hundredth of it along a half cosine."""
    warmup_steps: int = Field(100, ge=0)
    """Updates of linear warm-up."""
    weight_decay: float = Field(1e-4, ge=0)
    """Decoupled weight decay."""
    max_gradient_norm: float = Field(5.0, gt=0)
    """Gradients are clipped to this norm."""
    dropout: float = Field(0.4, ge=0, lt=1)
    """Dropout on the inputs of both BiLSTMs and on the top states; one mask for all words of a sentence."""
    word_dropout: float = Field(0.15, ge=0, lt=1)
    """Share of words whose embedding is that of the unknown word; their characters stay."""
    min_word_count: int = Field(2, ge=1)
    """Words seen less often in the training sentences have no embedding of their own."""
    average_decay: float = Field(0.999, ge=0, lt=1)
    """Decay of the running average of the weights, which is what is evaluated and kept."""
    auxiliary: AuxiliaryWeights = AuxiliaryWeights()
    """Losses on syntax, where the training data have it."""


class SegmenterSettings(Settings):
    """An EDU segmenter and its training."""

    network: NetworkSettings = NetworkSettings()
    """Sizes of the network."""
    training: SegmenterTrainingSettings = SegmenterTrainingSettings()
    """Recipe of the training."""
