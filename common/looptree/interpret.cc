#include "common/looptree/interpret.h"
