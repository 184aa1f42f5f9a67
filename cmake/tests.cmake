# SPDX-License-Identifier: Apache-2.0
# The programs of unit and pipeline tests.
add_custom_target(unit_tests)

# The longest of those with one thread. The thread sanitizer makes them ten times slower and has nothing to see in them.
set(SPANFLAME_ONE_THREAD_TESTS test_codec test_expand test_explore_room test_opaque_profile test_profile_fast_check
    test_profile_memory test_trace_store)

# spanflame_unit_test(test_ring SOURCES test_ring.c LIBRARIES spanflame_base [LABELS unit])
function(spanflame_unit_test name)
    cmake_parse_arguments(TEST "" "" "SOURCES;LIBRARIES;LABELS" ${ARGN})
    if(SPANFLAME_SANITIZERS MATCHES "thread" AND name IN_LIST SPANFLAME_ONE_THREAD_TESTS)
        return()
    endif()
    add_executable(${name} ${TEST_SOURCES})
    target_link_libraries(${name} PRIVATE ${TEST_LIBRARIES} spanflame_warnings PkgConfig::CMOCKA)
    # cmocka's assertion macros cast pointers to integers.
    target_compile_options(${name} PRIVATE -Wno-conversion -Wno-cast-qual)
    add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/run-test $<TARGET_FILE:${name}>
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(NOT TEST_LABELS)
        set(TEST_LABELS unit)
    endif()
    # Under the thread sanitizer some take half a minute of a core of their own.
    set(seconds 120)
    if(SPANFLAME_SANITIZERS MATCHES "thread")
        set(seconds 300)
    endif()
    add_dependencies(unit_tests ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${seconds}
        SKIP_RETURN_CODE 77)
endfunction()

# spanflame_fuzz_target(fuzz_wire LIBRARIES spanflame_otlp): tests/fuzz/fuzz_wire.c and its corpus in tests/fuzz/corpus/fuzz_wire.
# With SPANFLAME_FUZZERS it is a libFuzzer program; otherwise a small main replays the corpus as a test.
function(spanflame_fuzz_target name)
    cmake_parse_arguments(FUZZ "" "" "LIBRARIES" ${ARGN})
    add_executable(${name} ${name}.c)
    target_link_libraries(${name} PRIVATE ${FUZZ_LIBRARIES} spanflame_warnings)
    if(SPANFLAME_FUZZERS)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        add_dependencies(fuzzers ${name})
    else()
        target_link_libraries(${name} PRIVATE fuzz_replay)
        add_test(NAME ${name} COMMAND ${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
        set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 120)
    endif()
endfunction()
