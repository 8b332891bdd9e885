"""Settings of the EDU segmenter and of the RST parser."""

from typing import Literal

from pydantic import Field

from docmt.settings import Settings


class NetworkSettings(Settings):
    """Sizes of the network."""

    word_width: int = Field(default=100, ge=1)
    """Width of the embeddings of lower-cased words."""
    character_width: int = Field(default=25, ge=1)
    """Width of the embeddings of characters."""
    character_filters: int = Field(default=60, ge=1)
    """Filters of the convolution over the characters of a word."""
    shape_width: int = Field(default=10, ge=1)
    """Width of the embeddings of word shapes (capitals, digits, punctuation)."""
    lower_width: int = Field(default=150, ge=1)
    """Width of each direction of the lower BiLSTM."""
    upper_width: int = Field(default=120, ge=1)
    """Width of each direction of the upper BiLSTM."""
    attention_window: int = Field(default=5, ge=0)
    """Number of words that the restricted attention sees to the left and to the right."""
    head_width: int = Field(default=100, ge=1)
    """Width of both sides of the biaffine attention that predicts heads."""


class AuxiliaryWeights(Settings):
    """Weights of the losses on syntax, per word; the segmenter's own has weight 1."""

    pos: float = Field(default=0.05, ge=0)
    """Part of speech of each word."""
    relation: float = Field(default=0.05, ge=0)
    """Dependency relation of each word."""
    head: float = Field(default=0.05, ge=0)
    """Head of each word."""
    opening: float = Field(default=0.05, ge=0)
    """Dependency relation of the largest phrase that begins with each word."""


class SegmenterTrainingSettings(Settings):
    """The training recipe."""

    epochs: int = Field(default=20, ge=1)
    """Passes over the training sentences."""
    max_batch_words: int = Field(default=600, ge=1)
    """Largest number of words in a batch, padding included; a longer sentence forms a batch alone."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Learning rate of AdamW after the warm-up; half a cosine takes it down to a hundredth."""
    warmup_steps: int = Field(default=100, ge=0)
    """Updates of linear warm-up."""
    weight_decay: float = Field(default=1e-4, ge=0)
    """Decoupled weight decay."""
    max_gradient_norm: float = Field(default=5.0, gt=0)
    """Gradients are clipped to this norm."""
    dropout: float = Field(default=0.4, ge=0, lt=1)
    """Dropout on the inputs of both BiLSTMs and on the top states; one mask for all words of a sentence."""
    word_dropout: float = Field(default=0.15, ge=0, lt=1)
    """Share of words whose embedding is replaced by that of the unknown word; their characters stay."""
    min_word_count: int = Field(default=2, ge=1)
    """Words seen less often in the training sentences share the embedding of the unknown word."""
    average_decay: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the moving average of the weights; the average is what is evaluated and saved."""
    auxiliary: AuxiliaryWeights = AuxiliaryWeights()
    """Weights of the losses on syntax; unused where the training data have no syntax."""


class SegmenterSettings(Settings):
    """An EDU segmenter and its training."""

    network: NetworkSettings = NetworkSettings()
    """Sizes of the network."""
    training: SegmenterTrainingSettings = SegmenterTrainingSettings()
    """Training recipe."""


class NeuralSettings(Settings):
    """The network and its training."""

    members: int = Field(default=1, ge=1)
    """Number of networks; several, with different seeds, average their log probabilities."""
    layers: Literal["upper", "both"] = "both"
    """Word states that the network reads: from the segmenter's upper BiLSTM, or from both BiLSTMs."""
    queries: int = Field(default=3, ge=0)
    """Learned queries that weight the words of an EDU."""
    word_width: int = Field(default=24, ge=1)
    """Width of the embeddings of the first, second and last word of an EDU."""
    min_word_count: int = Field(default=8, ge=1)
    """Words seen less often at these positions share one embedding."""
    word_dropout: float = Field(default=0.15, ge=0, lt=1)
    """Share of these words that are treated as unknown."""
    edu_width: int = Field(default=160, ge=1)
    """Width of the vector of an EDU."""
    document_width: int = Field(default=80, ge=1)
    """Width of each direction of the BiLSTM over the EDUs of a document."""
    hidden_width: int = Field(default=128, ge=1)
    """Width of the hidden layers of both classifiers."""
    feature_width: int = Field(default=64, ge=1)
    """Width of the vector of a structural feature."""
    pair_width: int = Field(default=24, ge=1)
    """Width of the vectors by which two EDUs are compared."""
    epochs: int = Field(default=12, ge=1)
    """Passes over the training documents per member."""
    documents_per_batch: int = Field(default=6, ge=1)
    """Documents per update."""
    learning_rate: float = Field(default=2.5e-3, gt=0)
    """Peak learning rate of Adam; it decays linearly to 0."""
    weight_decay: float = Field(default=1e-3, ge=0)
    """Decoupled weight decay."""
    input_dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout on pooled word states."""
    hidden_dropout: float = Field(default=0.25, ge=0, lt=1)
    """Dropout on encoded EDUs and on the hidden layers of the action classifier."""
    feature_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of structural features hidden from the action classifier."""
    relation_dropout: float = Field(default=0.45, ge=0, lt=1)
    """Dropout on the hidden layers of the relation classifier."""
    relation_feature_dropout: float = Field(default=0.3, ge=0, lt=1)
    """Share of structural features hidden from the relation classifier."""
    paragraph_dropout: float = Field(default=0.35, ge=0, le=1)
    """Share of training documents whose paragraphs are hidden in an epoch, so that the parser also works without
    paragraphs."""
    label_smoothing: float = Field(default=0.05, ge=0, lt=1)
    """Probability mass that the loss spreads over all classes."""
    average_decay: float = Field(default=0.98, ge=0, lt=1)
    """Decay per update of the running average of the weights; the averaged weights are kept."""

    @property
    def reads_lower(self) -> bool:
        """True if the network reads the states of the segmenter's lower BiLSTM, too."""
        return self.layers == "both"


class ParserSettings(Settings):
    """An RST parser and its training."""

    relations: str | None = None
    """Inventory whose coarse classes are learned (`gum`, `gcdt`, `rst_dt`, `controlled`); null: the training trees'
    relations."""
    sentence_constraint: bool = True
    """Make every sentence one complete subtree."""
    paragraph_constraint: bool = False
    """Make every paragraph one complete subtree, where paragraphs are known."""
    neural: NeuralSettings = NeuralSettings()
    """The network and its training."""
