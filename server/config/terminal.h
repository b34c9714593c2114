#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/status.h"

// Output for people. The texts come from databases and gateways, so they cannot be trusted.
namespace sluice::server {

// Length of the well-formed UTF-8 character at text[i], 0 if there is none.
size_t CharacterLength(std::string_view text, size_t i);

// The text with bytes that are not UTF-8 replaced by U+FFFD. No peer can parse a gRPC message whose
// string fields are not UTF-8.
std::string ValidUtf8(std::string_view text);

// One line without anything that moves the cursor, changes colours or turns the writing direction:
// control characters, direction marks and bytes that are not UTF-8 are spelled out.
std::string Printable(std::string_view text);
// The same, but line ends are kept.
std::string PrintableLines(std::string_view text);

// Writes a message to standard error. A write error is ignored: there is no other place to report
// it.
void Say(std::string_view message);
// The error with its place in `script`.
void SayError(const Status& status, std::string_view script);

}  // namespace sluice::server
