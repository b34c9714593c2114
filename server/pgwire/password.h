#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/status.h"

// Passwords in the forms that a PostgreSQL server expects.
namespace sluice::server::pgwire {

// The form of a password that its SCRAM verifier is computed from: SASLprep (RFC 4013) as in
// PostgreSQL, which uses unchanged what SASLprep forbids. Works without Unicode's tables for ASCII,
// precomposed letters (European alphabets, Cyrillic, Greek, Hebrew, Arabic, Japanese, Korean,
// Chinese), common punctuation, emoji, and the spaces and invisible characters that are mapped.
// 0A000: a character outside those (half-width and superscript forms, ligatures, letters followed
// by combining accents).
Result<std::string> PreparePassword(std::string_view password);

// The answer to a server that asks for an MD5 password: "md5..." with its salt.
std::string Md5Password(std::string_view role, std::string_view password,
                        const std::array<char, 4>& salt);

}  // namespace sluice::server::pgwire
