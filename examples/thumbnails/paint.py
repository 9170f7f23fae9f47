"""Paints pictures for `thumbs.py`: `penstock run paint:app` paints one for each number in the topic `numbers`."""

from thumbs import write_png

from penstock import App

app = App("painter")


def paint(number: int, side: int = 256) -> bytes:
    return write_png([bytes((row * number + column) % 256 for column in range(side)) for row in range(side)])


@app.consume("numbers", to="pictures")
def picture(number: int) -> bytes:
    return paint(number)
