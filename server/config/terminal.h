#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/status.h"

// What a person sees. Texts come from databases and gateways, which may be anybody's.
namespace sluice::server {

// Length of the well-formed UTF-8 character at text[i], 0 if there is none.
size_t CharacterLength(std::string_view text, size_t i);

// As it is, but for bytes that are no UTF-8: those become U+FFFD. A message of gRPC with others in
// a text cannot be read by anybody.
std::string ValidUtf8(std::string_view text);

// One line, in which nothing moves the cursor, changes colours, or turns the direction of writing:
// control characters, marks of direction and bytes that are no UTF-8 are spelled out.
std::string Printable(std::string_view text);
// The same; keeps the ends of lines.
std::string PrintableLines(std::string_view text);

// Writes a message to standard error. Nobody is told where that is closed: there is nobody.
void Say(std::string_view message);
// The error with its place in `script`.
void SayError(const Status& status, std::string_view script);

}  // namespace sluice::server
