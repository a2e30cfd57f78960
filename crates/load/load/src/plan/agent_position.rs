//! Position of an agent among all agents of a load.

use serde::{Deserialize, Serialize};


