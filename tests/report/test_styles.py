"""System colors: their distance, including for readers with color deficiency, and other differences between systems."""

import itertools
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from colors import XYZ, contrast, linear
from score_rows import history
from smoke_study import StudyView

from docmt.config.loading import load_config, merge, read_config_file
from docmt.report.curves import MAX_BANDS, training_curves
from docmt.report.figures import distance_lines
from docmt.report.html import read_template
from docmt.report.settings import ReportSettings
from docmt.report.styles import COLORS, DARK_COLORS, DASHES, MARKERS, N_HUES, Styles, family_of, in_both_schemes

# Machado, Oliveira and Fernandes (2009), complete deficiency, for linear RGB.
DEUTERANOPIA = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
PROTANOPIA = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]


def lab(color, seen_with=((1, 0, 0), (0, 1, 0), (0, 0, 1))):
    """CIELAB (D65) of an sRGB color with a color deficiency."""
    seen = np.clip(np.array(seen_with) @ linear(color), 0, 1)
    t = np.array(XYZ) @ seen / (0.95047, 1, 1.08883)
    x, y, z = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(one, other):
    """Distance between two colors in CIELAB (Sharma, Wu and Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    c7 = ((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7
    g = 1.5 - 0.5 * math.sqrt(c7 / (c7 + 25**7))
    c1, c2 = math.hypot(g * a1, b1), math.hypot(g * a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, g * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    mean = h1 + turn / 2 if c1 * c2 else h1 + h2
    cosines = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    t = 1 + sum(weight * math.cos(math.radians(n * mean + shift)) for weight, n, shift in cosines)
    scaled = (
        (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2)),
        (c2 - c1) / (1 + 0.045 * chroma),
        hue / (1 + 0.015 * chroma * t),
    )
    bend = 60 * math.exp(-(((mean % 360 - 275) / 25) ** 2))
    turning = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7)) * math.sin(math.radians(bend))
    return math.sqrt(sum(part**2 for part in scaled) + turning * scaled[1] * scaled[2])


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [  # from the test data of Sharma, Wu and Dalal (2005)
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_formula_is_that_of_the_standard(one, other, distance):
    assert ciede2000(one, other) == pytest.approx(distance, abs=1e-4)


@pytest.mark.parametrize(("seen_with", "least"), [(np.eye(3), 19), (DEUTERANOPIA, 14.5), (PROTANOPIA, 14.5)])
@pytest.mark.parametrize("palette", [COLORS, (*DARK_COLORS.values(),)])
def test_colors_are_far_apart(palette, seen_with, least):
    assert len(palette) == 2 * N_HUES
    colors = [lab(color, seen_with) for color in palette]
    assert min(ciede2000(*pair) for pair in itertools.combinations(colors, 2)) >= least


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)  # the gray that WCAG names


def test_colors_fit_light_and_dark_pages():
    light, dark = re.findall(r"--ground: (#\w{6});", read_template("report.css"))
    assert contrast(light, "#ffffff") == 1, "files of pictures are on white, too"
    for ground, palette in ((light, COLORS), (dark, DARK_COLORS.values())):
        assert [color for color in palette if contrast(color, ground) < 3] == []


@pytest.mark.slow
def test_picture_colors_follow_the_scheme():
    (picture,) = training_curves(histories(3, n_seeds=1), styles_of(3))
    for color in COLORS[:3]:
        assert f"stroke: {color}" in picture.svg
        assert f"stroke: {in_both_schemes(color)}" in picture.inline_svg


def test_marks_and_dashes_tell_systems_apart_without_colors():
    systems = [f"s_{n}" for n in range(len(MARKERS) * len(DASHES))]
    styles = Styles(systems, ReportSettings())
    assert len({(styles.marker(name), styles.line(name)["linestyle"]) for name in systems}) == len(systems)
    assert len(set(MARKERS.values())) == len(MARKERS)
    assert [styles.bar(name)["hatch"] for name in systems[:5]] == ["", "//", "..", "xx", ""]


@pytest.mark.parametrize(
    "names",
    [
        [f"rst_{n}" for n in range(14)],
        [f"{family}_{n}" for n in range(3) for family in "abcdefg"],
        ["a", "b", "b_2", "b_3", "c", "d", "e", "f", "f_2", "g"],
    ],
)
def test_systems_share_no_color(names):
    styles = Styles(names, ReportSettings())
    assert len({styles.color(name) for name in names}) == min(len(COLORS), len(names))
    lines = {tuple(styles.marked_line(name)[key] for key in ("color", "marker", "linestyle")) for name in names}
    assert len(lines) == len(names)


def hue(color):
    """Angle of a color in CIELAB, or None for a gray."""
    _, a, b = lab(color)
    return math.degrees(math.atan2(b, a)) if math.hypot(a, b) > 15 else None


@pytest.mark.parametrize("palette", [COLORS, (*DARK_COLORS.values(),)])
def test_both_shades_of_a_family_have_one_hue(palette):
    for first, second in zip(palette[:N_HUES], palette[N_HUES:], strict=True):
        hues = hue(first), hue(second)
        assert None not in hues or hues == (None, None)
        assert None in hues or abs((hues[0] - hues[1] + 180) % 360 - 180) < 60


def test_family_members_share_a_hue():
    names = ["sentence", "rst_mix", "g_transformer", "rst_serial", "G-Transformer 512", "rst_parallel", "document"]
    assert [family_of(name) for name in names] == ["sentence", "rst", "g", "rst", "g", "rst", "document"]
    styles = Styles(names, ReportSettings())
    numbers = [COLORS.index(styles.color(name)) for name in names]
    assert numbers == [0, 1, 2, 1 + N_HUES, 2 + N_HUES, 4, 3], "the third of a family has a free color"
    assert family_of("...") == "..."


def histories(n_systems, n_seeds=2):
    table = pd.DataFrame({"step": [1, 2, 3], "train_loss": [3.0, 2.0, 1.0], "dev_loss": [math.nan, 4.0, 3.0]})
    return [history(f"s{n}", seed, **(table + n)) for n in range(n_systems) for seed in range(n_seeds)]


def styles_of(n_systems):
    return Styles([f"s{n}" for n in range(n_systems)], ReportSettings())


@pytest.mark.slow
def test_many_systems_get_panels_of_their_own():
    few = training_curves(histories(MAX_BANDS), styles_of(MAX_BANDS))
    assert [picture.key for picture in few] == ["learning_curves_d"]
    many = training_curves(histories(12), styles_of(12))
    assert [picture.key for picture in many] == ["learning_curves_d", "learning_curves_d_by_system"]
    bands = [picture.svg.count("FillBetweenPolyCollection") for picture in (*few, *many)]
    assert bands == [2 * MAX_BANDS, 0, 2 * 12], "bands are either apart or not there"
    assert all(color in picture.svg for picture in many for color in COLORS)
    lines = training_curves(histories(MAX_BANDS + 1, n_seeds=1), styles_of(MAX_BANDS + 1))
    assert [picture.key for picture in lines] == ["learning_curves_d"], "one seed has no band"


@pytest.mark.slow
def test_phenomena_have_panels():
    rows = [
        {"dataset": "d", "system": f"s{n}", "test": "t", "metric": "contrastive accuracy", "phenomenon": phenomenon}
        | {"distance": distance, "kind": None, "mean": 50.0 + n, "low": 40.0, "high": 70.0, "chance": 50.0, "n": 9}
        for phenomenon in ("pronoun", "deixis")
        for n in range(8)
        for distance in ("1", "4–6")
    ]
    (picture,) = distance_lines(pd.DataFrame(rows), styles_of(8))
    assert picture.key == "distance_d"
    assert picture.svg.count('id="axes_') == 2
    assert picture.svg.count("LineCollection") == 3 * 8, "each system has its intervals, in two panels and the legend"


def test_the_reader_has_the_colors_of_the_report(pytestconfig):
    settings = {"curves": {"loss": {"title": "L", "systems": ["rst_mix"], "panels": {"Loss": ["dev_loss"]}}}}
    path = pytestconfig.rootpath / "config/examples/smoke.yaml"
    study = StudyView(load_config(merge(read_config_file(path), {"report": settings})))
    legend = json.loads(study.reader().params["study"])["systems"]
    systems = json.loads(study.report().params["study"])["systems"]
    report = study.config.report
    colors = Styles([*report.legend, *systems], report)
    assert legend[: len(report.legend)] == report.legend != []
    assert {name: Styles(legend, report).color(name) for name in systems} == {n: colors.color(n) for n in systems}
