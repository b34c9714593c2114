#pragma once

#include <string>
#include <vector>

namespace sluice::server {

// Takes the command line. Every user of the machine can read a process's command line, so secrets
// in it are overwritten: passwords of URLs, and SQL, which may hold some (ALTER ROLE).
std::vector<std::string> TakeArguments(int argc, char** argv);

}  // namespace sluice::server
