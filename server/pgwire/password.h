#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/status.h"

// Passwords as a PostgreSQL server wants them.
namespace sluice::server::pgwire {

// A password as its SCRAM verifier was made of it: SASLprep (RFC 4013) as PostgreSQL does it, which
// takes what SASLprep forbids as it stands. Known without Unicode's tables: ASCII, letters that are
// composed already (European alphabets, Cyrillic, Greek, Hebrew, Arabic, Japanese, Korean,
// Chinese), common punctuation, emoji, and the spaces and invisible characters that are mapped.
// 0A000: there is a character of which it is not known here (half-width and superscript forms,
// ligatures, letters followed by combining accents).
Result<std::string> PreparePassword(std::string_view password);

// The answer to a server that asks for an MD5 password: "md5..." of its salt.
std::string Md5Password(std::string_view role, std::string_view password,
                        const std::array<char, 4>& salt);

}  // namespace sluice::server::pgwire
