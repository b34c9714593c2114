#pragma once

#include <cstdint>
#include <string>

// Random numbers that nobody can guess.
namespace sluice::server::pgwire {

std::string RandomToken();  // 64 hexadecimal digits
uint32_t RandomKey();

}  // namespace sluice::server::pgwire
