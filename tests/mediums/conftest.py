import pytest

from tests.mediums.stages import STAGES, open_stage
from tests.mediums.stages.email import open_stage as open_email
from tests.mediums.stages.slack import open_stage as open_slack
from tests.mediums.stages.telegram import open_stage as open_telegram


@pytest.fixture(params=STAGES)
async def stage(request):
    async with open_stage(request.param) as opened:
        yield opened


@pytest.fixture
async def email():
    async with open_email() as opened:
        yield opened


@pytest.fixture
async def telegram():
    async with open_telegram() as opened:
        yield opened


@pytest.fixture
async def slack():
    async with open_slack() as opened:
        yield opened
