"""Writes pictures to the topic `pictures`: `python paint.py 127.0.0.1:9092 20`."""

import sys

from thumbs import write_png

from penstock import Producer


def paint(number: int, side: int = 256) -> bytes:
    return write_png([bytes((row * number + column) % 256 for column in range(side)) for row in range(side)])


if __name__ == "__main__":
    with Producer(sys.argv[1]) as producer:
        for number in range(int(sys.argv[2])):
            producer.send("pictures", paint(number), key=f"picture-{number}")
        producer.send("pictures", b"GIF89a", key="old")
