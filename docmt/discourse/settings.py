"""Settings of the EDU segmenter and of the RST parser."""

from typing import Literal

from pydantic import Field

from docmt.settings import Settings


class NetworkSettings(Settings):
    """Network sizes."""

    word_width: int = Field(default=100, ge=1)
    """Width of word embeddings (lower case)."""
    character_width: int = Field(default=25, ge=1)
    """Width of character embeddings."""
    character_filters: int = Field(default=60, ge=1)
    """Number of convolution filters over the characters of a word."""
    shape_width: int = Field(default=10, ge=1)
    """Width of word shape embeddings (capitals, digits, punctuation)."""
    lower_width: int = Field(default=150, ge=1)
    """Width of the lower BiLSTM, per direction."""
    upper_width: int = Field(default=120, ge=1)
    """Width of the upper BiLSTM, per direction."""
    attention_window: int = Field(default=5, ge=0)
    """Number of words on either side in the window of restricted attention."""
    head_width: int = Field(default=100, ge=1)
    """Width of the biaffine attention that predicts syntactic heads."""


class AuxiliaryWeights(Settings):
    """Weights of the auxiliary losses on syntax, per word. The segmentation loss has weight 1."""

    pos: float = Field(default=0.05, ge=0)
    """Part of speech."""
    relation: float = Field(default=0.05, ge=0)
    """Dependency relation."""
    head: float = Field(default=0.05, ge=0)
    """Syntactic head."""
    opening: float = Field(default=0.05, ge=0)
    """Dependency relation of the largest phrase that begins with the word."""


class SegmenterTrainingSettings(Settings):
    """Training recipe."""

    epochs: int = Field(default=20, ge=1)
    """Number of epochs."""
    max_batch_words: int = Field(default=600, ge=1)
    """Maximum batch size in words, with padding. A longer sentence is a batch by itself."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of AdamW, with cosine decay to a hundredth."""
    warmup_steps: int = Field(default=100, ge=0)
    """Number of linear warm-up updates."""
    weight_decay: float = Field(default=1e-4, ge=0)
    """Decoupled weight decay."""
    max_gradient_norm: float = Field(default=5.0, gt=0)
    """Maximum gradient norm (clipping)."""
    dropout: float = Field(default=0.4, ge=0, lt=1)
    """Dropout on the inputs of both BiLSTMs and on the top states, with one mask per sentence."""
    word_dropout: float = Field(default=0.15, ge=0, lt=1)
    """Share of words whose embedding is replaced by the unknown word's. Character features remain."""
    min_word_count: int = Field(default=2, ge=1)
    """Minimum frequency of words with an embedding."""
    average_decay: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the moving average of weights, which is evaluated and saved."""
    auxiliary: AuxiliaryWeights = AuxiliaryWeights()
    """Weights of the auxiliary losses on syntax. Not used for training data without syntax."""


class SegmenterSettings(Settings):
    """An EDU segmenter and its training."""

    network: NetworkSettings = NetworkSettings()
    """Network sizes."""
    training: SegmenterTrainingSettings = SegmenterTrainingSettings()
    """Training recipe."""


class NeuralSettings(Settings):
    """Network and training."""

    members: int = Field(default=1, ge=1)
    """Number of ensemble members with different seeds, whose log probabilities are averaged."""
    layers: Literal["upper", "both"] = "both"
    """Segmenter states to read: `upper` BiLSTM, or `both` BiLSTMs."""
    queries: int = Field(default=3, ge=0)
    """Number of learned queries that pool the words of an EDU."""
    word_width: int = Field(default=24, ge=1)
    """Width of the embeddings of an EDU's first, second and last word."""
    min_word_count: int = Field(default=8, ge=1)
    """Minimum frequency of words with an embedding at these positions."""
    word_dropout: float = Field(default=0.15, ge=0, lt=1)
    """Share of these words that are replaced by the unknown word."""
    edu_width: int = Field(default=160, ge=1)
    """Width of EDU vectors."""
    document_width: int = Field(default=80, ge=1)
    """Width of the BiLSTM over the EDUs of a document, per direction."""
    hidden_width: int = Field(default=128, ge=1)
    """Width of the hidden layers of both classifiers."""
    structure_width: int = Field(default=64, ge=1)
    """Width of the embeddings of boundaries and sizes of spans."""
    pair_width: int = Field(default=24, ge=1)
    """Width of the vectors that compare two EDUs."""
    epochs: int = Field(default=12, ge=1)
    """Number of epochs per member."""
    documents_per_batch: int = Field(default=6, ge=1)
    """Number of documents per update."""
    learning_rate: float = Field(default=2.5e-3, gt=0)
    """Peak learning rate of Adam, with linear decay to 0."""
    weight_decay: float = Field(default=1e-3, ge=0)
    """Decoupled weight decay."""
    input_dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout on pooled word states."""
    hidden_dropout: float = Field(default=0.25, ge=0, lt=1)
    """Dropout on EDU vectors and on the hidden layers of the action classifier."""
    relation_dropout: float = Field(default=0.45, ge=0, lt=1)
    """Dropout on the hidden layers of the relation classifier."""
    paragraph_dropout: float = Field(default=0.35, ge=0, le=1)
    """Share of training documents whose paragraphs are hidden in an epoch, so that the parser also works without
    paragraphs."""
    label_smoothing: float = Field(default=0.05, ge=0, lt=1)
    """Label smoothing: probability mass spread over all classes."""
    average_decay: float = Field(default=0.98, ge=0, lt=1)
    """Decay of the moving average of weights, which is saved."""

    @property
    def reads_lower(self) -> bool:
        """True if the network reads the states of the segmenter's lower BiLSTM, too."""
        return self.layers == "both"


class ParserSettings(Settings):
    """An RST parser and its training."""

    relations: str | None = None
    """Relation inventory to learn: `gum`, `gcdt`, `rst_dt` or `controlled`. Default: the relations of the training
    trees."""
    sentence_constraint: bool = True
    """Each sentence must form a complete subtree."""
    paragraph_constraint: bool = False
    """Each paragraph must form a complete subtree, if paragraphs are known."""
    neural: NeuralSettings = NeuralSettings()
    """Network and training."""
