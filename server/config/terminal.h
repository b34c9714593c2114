#pragma once

#include <string_view>

#include "base/status.h"

// Output for people, printable whatever it is: texts come from databases and gateways.
namespace sluice::server {

// Writes a message to standard error. A write error is ignored: there is no other place to report
// it.
void Say(std::string_view message);
// The error with its place in `script`.
void SayError(const Status& status, std::string_view script);

}  // namespace sluice::server
