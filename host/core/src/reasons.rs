//! Reasons of merged conditions, shared by all kinds.

use capwasm_api::conditions::Reasons;
use capwasm_api::names::reason;

/// For `Ready`, `MachinesReady` and the like.
pub(crate) const READY: Reasons =
    Reasons { issue: reason::NOT_READY, unknown: reason::READY_UNKNOWN, info: reason::READY };
/// For `MachinesUpToDate` and the like.
pub(crate) const UP_TO_DATE: Reasons =
    Reasons { issue: reason::NOT_UP_TO_DATE, unknown: reason::UP_TO_DATE_UNKNOWN, info: reason::UP_TO_DATE };
/// For `Available` and the like.
pub(crate) const AVAILABLE: Reasons =
    Reasons { issue: reason::NOT_AVAILABLE, unknown: reason::AVAILABLE_UNKNOWN, info: reason::AVAILABLE };
/// For `RollingOut`, of negative polarity.
pub(crate) const ROLLING_OUT: Reasons =
    Reasons { issue: reason::ROLLING_OUT, unknown: reason::ROLLING_OUT_UNKNOWN, info: reason::NOT_ROLLING_OUT };
/// For `ScalingUp`, of negative polarity.
pub(crate) const SCALING_UP: Reasons =
    Reasons { issue: reason::SCALING_UP, unknown: reason::SCALING_UP_UNKNOWN, info: reason::NOT_SCALING_UP };
/// For `ScalingDown`, of negative polarity.
pub(crate) const SCALING_DOWN: Reasons =
    Reasons { issue: reason::SCALING_DOWN, unknown: reason::SCALING_DOWN_UNKNOWN, info: reason::NOT_SCALING_DOWN };
