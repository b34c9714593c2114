#include "server/config/version.h"

namespace sluice::server {

const char* const kVersion = SLUICE_VERSION;

}  // namespace sluice::server
