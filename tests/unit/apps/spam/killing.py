"""Two processes learn, relearn and forget in one store and are killed, again and again; what they were told must be so.

Run by a test as a process of its own, so that nothing else is forked: ``killing.py PLACE ROUNDS``. Every writer says in
a pipe what it is about to do, and what was acknowledged; what is found in the store must be the last acknowledged state
of every message, or that of the one change which was under way.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time

from tallybayes.apps.spam.store.maintenance import check_integrity
from tallybayes.apps.spam.store.message_codec import Message
from tallybayes.apps.spam.store.spam_store import Store

WORDS = [f"word{number}" for number in range(300)]


def message(*name):
    content = repr(name)
    chance = random.Random(content)
    return Message(hashlib.sha256(content.encode()).digest(), [*chance.sample(WORDS, 20), f"only{content}"])


def write(place, number, writer, pipe):
    """Change the store without end; messages are this writer's own, but for one that both learn."""
    store = Store(place)
    chance = random.Random(f"{number} {writer}")
    mine, turn = [], 0

    def told(kind, names, label):
        os.write(pipe, (json.dumps([kind, [name.hex() for name in names], label]) + "\n").encode())

    while True:
        turn += 1
        time.sleep(0.001)  # whoever writes without a pause is alone: SQLite lets others wait ever longer
        shared = message(number, "shared", turn)
        outcome = store.learn([shared], "spam")
        if outcome == ["learned"]:
            told("ack", [shared.id], "spam")
        what, label = chance.choice(["learn", "learn", "relearn", "forget"]), chance.choice(["ham", "spam"])
        if what == "learn" or not mine:
            several = [message(number, writer, turn, place) for place in range(chance.randint(1, 4))]
            mine += several
        else:
            several = [chance.choice(mine)]
        names = [one.id for one in several]
        if what == "forget" and len(mine) > 4:
            told("try", names, None)
            store.forget(names)
            told("ack", names, None)
        else:
            told("try", names, label)
            store.relearn(several, label)
            told("ack", names, label)


def one_round(place, number, chance):
    """Two writers, killed after a while; how the messages must be, by what was said: possible labels of each."""
    children, pipes = [], []
    for writer in range(2):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                write(place, number, writer, writing)
            except BaseException as error:
                os.write(writing, (json.dumps(["failed", [], repr(error)]) + "\n").encode())
                time.sleep(60)
            os._exit(1)
        os.close(writing)
        children.append(child)
        pipes.append(reading)
    first = [os.read(pipe, 1) for pipe in pipes]  # both are at work
    for child in children:
        time.sleep(chance.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
    expected = {}
    for child, pipe, begun in zip(children, pipes, first, strict=True):
        os.waitpid(child, 0)
        said = begun
        while piece := os.read(pipe, 1 << 16):
            said += piece
        os.close(pipe)
        for line in said.decode().splitlines():
            kind, names, label = json.loads(line)
            if kind == "failed":
                raise SystemExit(f"a writer failed: {label}")
            for name in names:
                if kind == "try":
                    expected[name] = {*expected.get(name, {None}), label}
                else:
                    expected[name] = {label}
    return expected


def main(place, rounds):
    chance = random.Random(1)
    Store(place, create=True).close()
    expected = {}
    for number in range(rounds):
        expected |= one_round(place, number, chance)
        if number % 20 == 19:
            with Store(place) as store:
                wrong = check_integrity(store)
                assert not wrong, wrong
                for name, labels in expected.items():
                    found = store.label_of(bytes.fromhex(name))
                    assert found in labels, (name, found, labels)
                kept = [one for ids, *_ in store.messages() for one in ids]
                assert len(kept) == len(set(kept))
    sys.stdout.write(json.dumps({"messages": len(expected), "kept": len(kept)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
