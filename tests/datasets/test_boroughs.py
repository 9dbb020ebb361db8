"""Boroughs of well-known places, and of places that are in none."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.datasets.boroughs import BOROUGHS, OUTSIDE, POLYGONS, borough_of

PLACES = {
    "Manhattan": {
        "Empire State Building": (40.7484, -73.9857),
        "Times Square": (40.7580, -73.9855),
        "Wall Street": (40.7069, -74.0113),
        "Columbia University": (40.8075, -73.9626),
        "the Cloisters": (40.8649, -73.9317),
        "Penn Station": (40.7506, -73.9935),
        "Grand Central": (40.7527, -73.9772),
        "Apollo Theater": (40.8100, -73.9500),
        "United Nations": (40.7489, -73.9680),
        "Battery Park City": (40.7118, -74.0157),
        "Roosevelt Island": (40.7573, -73.9540),
        "South Street Seaport": (40.7063, -74.0036),
        "Marble Hill": (40.8761, -73.9103),
        "Randalls Island": (40.7933, -73.9237),
    },
    "Brooklyn": {
        "Barclays Center": (40.6826, -73.9754),
        "Brooklyn Museum": (40.6712, -73.9636),
        "Coney Island": (40.5745, -73.9780),
        "Dumbo": (40.7033, -73.9881),
        "Bedford Avenue": (40.7173, -73.9569),
        "Greenpoint": (40.7243, -73.9436),
        "Bay Ridge": (40.6262, -74.0299),
        "Kings Plaza": (40.6100, -73.9202),
        "Canarsie Pier": (40.6290, -73.8835),
        "Broadway Junction": (40.6789, -73.9043),
        "Bushwick": (40.7066, -73.9229),
        "Green-Wood Cemetery": (40.6581, -73.9943),
        "Starrett City": (40.6480, -73.8800),
        "Red Hook": (40.6721, -74.0115),
        "Brooklyn Heights Promenade": (40.6960, -73.9975),
    },
    "Queens": {
        "LaGuardia Airport": (40.7769, -73.8740),
        "Kennedy Airport": (40.6440, -73.7825),
        "Citi Field": (40.7571, -73.8458),
        "Flushing": (40.7596, -73.8301),
        "Astoria Park": (40.7790, -73.9220),
        "MoMA PS1": (40.7454, -73.9471),
        "Gantry Plaza": (40.7458, -73.9583),
        "Forest Hills": (40.7196, -73.8448),
        "Jamaica Center": (40.7021, -73.8011),
        "Rockaway Beach": (40.5880, -73.8137),
        "Ridgewood": (40.7044, -73.9031),
        "Howard Beach": (40.6604, -73.8303),
        "Bayside": (40.7632, -73.7712),
        "Queens Village": (40.7172, -73.7359),
        "Breezy Point": (40.5565, -73.9260),
    },
    "Bronx": {
        "Yankee Stadium": (40.8296, -73.9262),
        "Bronx Zoo": (40.8506, -73.8770),
        "Fordham University": (40.8612, -73.8856),
        "Van Cortlandt Park": (40.8893, -73.8986),
        "Wave Hill": (40.8976, -73.9122),
        "Co-op City": (40.8740, -73.8290),
        "City Island": (40.8471, -73.7865),
        "Hunts Point Market": (40.8065, -73.8760),
        "the Hub": (40.8163, -73.9178),
        "Parkchester": (40.8386, -73.8610),
        "Fort Schuyler": (40.8062, -73.7970),
        "Wakefield": (40.9031, -73.8506),
    },
    "Staten Island": {
        "St. George Ferry": (40.6437, -74.0736),
        "Staten Island Mall": (40.5822, -74.1653),
        "Staten Island Zoo": (40.6254, -74.1149),
        "Snug Harbor": (40.6437, -74.1025),
        "Tottenville": (40.5127, -74.2518),
        "College of Staten Island": (40.6022, -74.1500),
        "Great Kills": (40.5514, -74.1511),
        "Fort Wadsworth": (40.6040, -74.0590),
        "South Beach": (40.5830, -74.0720),
        "Port Richmond": (40.6330, -74.1360),
        "Wagner College": (40.6150, -74.0930),
        "Richmond Town": (40.5703, -74.1454),
    },
    "nowhere": {
        "Newark Airport": (40.6895, -74.1745),
        "Jersey City": (40.7164, -74.0330),
        "Hoboken": (40.7350, -74.0280),
        "Fort Lee": (40.8509, -73.9701),
        "Yonkers": (40.9312, -73.8988),
        "Mount Vernon": (40.9126, -73.8371),
        "Great Neck": (40.8007, -73.7285),
        "Belmont Park": (40.7147, -73.7226),
        "Long Beach": (40.5884, -73.6579),
        "Atlantic Ocean": (40.4500, -73.8000),
        "no coordinates": (0.0, 0.0),
        "swapped": (-73.9857, 40.7484),
        "not a number": (np.nan, -73.98),
    },
}


@pytest.mark.parametrize("borough", PLACES)
def test_famous_places_are_where_they_are(borough):
    latitude, longitude = zip(*PLACES[borough].values(), strict=True)
    names = (*BOROUGHS, "nowhere")  # OUTSIDE is -1, the last
    found = {place: names[k] for place, k in zip(PLACES[borough], borough_of(longitude, latitude), strict=True)}
    assert OUTSIDE == -1
    assert found == dict.fromkeys(PLACES[borough], borough)


def area(polygon: np.ndarray) -> float:
    """Square kilometres of a polygon near New York."""
    x, y = polygon.T * np.array([[84.4], [111.0]])
    return abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))) / 2


def test_boroughs_tile_the_city_without_gaps_or_overlaps():
    """A random point lies in as many polygons as it should: none or one; and the areas are what they should be."""
    random = np.random.default_rng(0)
    x, y = random.uniform(-74.3, -73.65, 200_000), random.uniform(40.45, 40.95, 200_000)
    found = borough_of(x, y)
    box = 0.65 * 84.4 * 0.5 * 111.0
    for index, name in enumerate(BOROUGHS):
        share = np.mean(found == index)
        error = 5 * np.sqrt(share / len(x)) * box
        assert share * box == pytest.approx(area(POLYGONS[name]), abs=error)
    # Square kilometres of land, and of land and water, by the city's own figures.
    sizes = {"Manhattan": (59, 87), "Brooklyn": (180, 251), "Queens": (281, 461), "Bronx": (109, 149)}
    for name, (land, whole) in {**sizes, "Staten Island": (151, 265)}.items():
        assert land < area(POLYGONS[name]) < 1.05 * whole
