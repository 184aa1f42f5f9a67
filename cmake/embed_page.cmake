# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C file with every file of FOLDER that a browser gets, compressed by gzip: struct explore_asset
# (extensions/explore/explore_assets.h). Run as a script: cmake -DFOLDER=… -DOUTPUT=… -P embed_page.cmake
set(types
    "html=text/html\; charset=utf-8" "css=text/css\; charset=utf-8" "js=text/javascript\; charset=utf-8"
    "svg=image/svg+xml" "png=image/png" "ico=image/x-icon" "json=application/json" "txt=text/plain\; charset=utf-8"
    "webmanifest=application/manifest+json" "woff2=font/woff2")
file(GLOB_RECURSE files RELATIVE ${FOLDER} ${FOLDER}/*)
list(SORT files)
set(arrays "")
set(rows "")
set(number 0)
foreach(file IN LISTS files)
    string(REGEX MATCH "[^.]*$" ending "${file}")
    set(type "")
    foreach(known IN LISTS types)
        if(known MATCHES "^${ending}=(.*)$")
            set(type "${CMAKE_MATCH_1}")
        endif()
    endforeach()
    if(type STREQUAL "")
        continue() # README.md and the like
    endif()
    execute_process(COMMAND gzip -9nc ${FOLDER}/${file} OUTPUT_FILE ${OUTPUT}.gz COMMAND_ERROR_IS_FATAL ANY)
    file(READ ${OUTPUT}.gz bytes HEX)
    file(SHA256 ${FOLDER}/${file} digest)
    string(SUBSTRING ${digest} 0 32 etag)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "static const uint8_t file_${number}[] = {${bytes}};\n")
    string(APPEND rows "    {\"/${file}\", \"${type}\", \"\\\"${etag}\\\"\", file_${number}, sizeof(file_${number})},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(REMOVE ${OUTPUT}.gz)
file(WRITE ${OUTPUT}.new
    "/* Generated from explore/ by cmake/embed_page.cmake. */\n#include \"extensions/explore/explore_assets.h\"\n\n"
    "${arrays}\nconst struct explore_asset explore_assets[] = {\n${rows}    {NULL, NULL, NULL, NULL, 0},\n};\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
