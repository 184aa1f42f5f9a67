# SPDX-License-Identifier: Apache-2.0
# Flags as INTERFACE targets: what builds our code links one of the first two, generated code neither.
add_library(spanflame_flags INTERFACE)
target_include_directories(spanflame_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(spanflame_flags INTERFACE _GNU_SOURCE SPANFLAME_VERSION="${PROJECT_VERSION}")
target_compile_options(spanflame_flags INTERFACE
    -fno-omit-frame-pointer
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
    -fstack-protector-strong
    -fcf-protection=full
    $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
target_link_options(spanflame_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed)

# Many x86 processors run a loop at half its speed when a jump in it touches the end of 32 bytes (Intel's erratum SKX102).
# With LTO the link assembles, and warns unless every object asks for the same: generated code links this one too.
include(CheckCCompilerFlag)
add_library(spanflame_jump_padding INTERFACE)
check_c_compiler_flag(-Wa,-mbranches-within-32B-boundaries SPANFLAME_HAS_JUMP_PADDING)
if(SPANFLAME_HAS_JUMP_PADDING)
    target_compile_options(spanflame_jump_padding INTERFACE $<$<CONFIG:Release>:-Wa,-mbranches-within-32B-boundaries>)
    target_link_options(spanflame_jump_padding INTERFACE $<$<CONFIG:Release>:-Wa,-mbranches-within-32B-boundaries>)
endif()
target_link_libraries(spanflame_flags INTERFACE spanflame_jump_padding)

add_library(spanflame_warnings INTERFACE)
target_link_libraries(spanflame_warnings INTERFACE spanflame_flags)
target_compile_options(spanflame_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wundef -Wcast-qual -Wformat=2 -Werror
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes -Wvla -Wswitch-enum>
    $<$<COMPILE_LANGUAGE:C>:-Werror=implicit-function-declaration -Werror=incompatible-pointer-types>
    -Wno-gnu-zero-variadic-macro-arguments)

if(SPANFLAME_SANITIZERS)
    target_compile_options(spanflame_flags INTERFACE
        -fsanitize=${SPANFLAME_SANITIZERS} -fno-sanitize-recover=all -O1)
    target_link_options(spanflame_flags INTERFACE -fsanitize=${SPANFLAME_SANITIZERS})
endif()
if(SPANFLAME_FUZZERS)
    target_compile_options(spanflame_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
# Hundreds of tests are linked, each with most of the product; lld needs half the time.
include(CheckLinkerFlag)
if(NOT SPANFLAME_LTO)
    check_linker_flag(C -fuse-ld=lld SPANFLAME_HAS_LLD)
    if(SPANFLAME_HAS_LLD)
        target_link_options(spanflame_flags INTERFACE -fuse-ld=lld)
    endif()
endif()
if(SPANFLAME_LTO)
    set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

# Assertions stay on in release builds: they state what the code relies on.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
string(REPLACE "-O3" "-O2" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
