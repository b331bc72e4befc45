# SPDX-License-Identifier: Apache-2.0
"""Springs between links and their parents, beside the motors: gravity springs, counterbalances, gas springs."""

from .gas import GasLaw as GasLaw
from .spring import PARALLEL_LAWS as PARALLEL_LAWS
from .spring import Anchors as Anchors
from .spring import ParallelSpring as ParallelSpring
from .spring import SignedLinearLaw as SignedLinearLaw
from .table import TableLaw as TableLaw
