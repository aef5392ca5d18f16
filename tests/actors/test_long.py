"""A transcript that becomes long is compacted, and keeps what people said."""

from actors.entries import Compacted, Interjected
from actors.workshop import Limits
from gateway.events import ActionResponded, ClarificationRequested
from tests.actors.rules import texts
from tests.actors.shop import COMPACTED, Held, Shop, call, code

PRINTS = code("print('row ' * 2000)")


async def test_instructions_interjections_and_open_questions_stay_word_by_word(tmp_path):
    async with Shop(tmp_path, limits=Limits(compact_tokens=6_000)) as shop:
        held = Held(PRINTS)
        question = call("request_clarification", question="Which of the two Sarahs?")
        shop.model.on("February", [question, PRINTS], PRINTS, held, PRINTS, PRINTS, "All done")
        shop.model.beside = lambda request: "I printed rows; the file is rows.csv." if _compacts(request) else "Half."
        await shop.start("a1", "Do February, and mind the work account")
        await shop.fact("a1", ClarificationRequested)
        await shop.interject("a1", "Round to whole euros, please")
        await held.asked.wait()
        held.release()
        await shop.entry("a1", Compacted)
        await shop.again()
        await shop.answer("a1", "question1", "Sarah B")
        await shop.fact("a1", ActionResponded)
        state = await shop.state("a1")
        lines = texts(state)
        assert lines[0] == "user: [task from Ana] Do February, and mind the work account"
        assert any("Round to whole euros, please" in line for line in lines)
        summary = next(line for line in lines if "transcript had become long" in line)
        assert "the file is rows.csv" in summary
        assert "question1: “Which of the two Sarahs?”" in summary
        log = await shop.log("a1")
        assert sum(isinstance(one, Compacted) for one in log) == sum(
            COMPACTED in str(one.messages[-1]) for one in shop.model.requests["February"]
        )
        assert sum(isinstance(one, Interjected) for one in log) == 1


async def test_what_a_person_answered_stays_word_by_word_however_often_it_is_compacted(tmp_path):
    async with Shop(tmp_path, limits=Limits(compact_tokens=3_000)) as shop:
        question = call("request_clarification", question="Which Sarah?")
        shop.model.on("February", question, *[PRINTS] * 6, "All done")
        shop.model.beside = lambda request: "I printed rows."
        await shop.start("a1", "Do February")
        asked = await shop.fact("a1", ClarificationRequested)
        await shop.answer("a1", asked.question, "Sarah Lind,\nnot Okafor")
        await shop.fact("a1", ActionResponded)
        assert len([one for one in await shop.log("a1") if isinstance(one, Compacted)]) > 1
        said = "\n".join(texts(await shop.state("a1")))
        assert said.count("was answered by Ana: Sarah Lind,\nnot Okafor") == 1


def _compacts(request) -> bool:
    return COMPACTED in str(request.messages[-1]["content"])


async def test_a_summary_that_cannot_be_made_stops_nothing(tmp_path):
    async with Shop(tmp_path, limits=Limits(compact_tokens=3_000)) as shop:
        shop.model.on("February", PRINTS, PRINTS, PRINTS, "Done")
        shop.model.beside = lambda request: ""
        await shop.start("a1", "Do February")
        await shop.fact("a1", ActionResponded)
        assert not [one for one in await shop.log("a1") if isinstance(one, Compacted)]


async def test_a_word_while_the_summary_is_made_comes_first(tmp_path):
    async with Shop(tmp_path, limits=Limits(compact_tokens=3_000)) as shop:
        shop.model.on("February", PRINTS, PRINTS, PRINTS, PRINTS, "Done")
        gate = Held("The rows are printed.")
        asked = 0

        def beside(request):
            nonlocal asked
            asked += 1
            return gate if asked == 1 else "The rows are printed."

        shop.model.beside = beside
        await shop.start("a1", "Do February")
        await gate.asked.wait()
        await shop.interject("a1", "In euros")
        await gate.cancelled.wait()
        await shop.fact("a1", ActionResponded)
        assert any("In euros" in line for line in texts(await shop.state("a1")))
        assert [one for one in await shop.log("a1") if isinstance(one, Compacted)]
