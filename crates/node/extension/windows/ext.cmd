@echo off
rem Called by the guest agent of Azure: ext.cmd install^|enable^|update^|disable^|uninstall.
setlocal
set "here=%~dp0."
set "program=%~dp0bin\bringup-node.exe"
set "root="
rem For tests: the folder that stands for the machine.
if defined BRINGUP_NODE_ROOT set root=--root "%BRINGUP_NODE_ROOT%"
if /i "%PROCESSOR_ARCHITECTURE%"=="AMD64" goto run
if /i "%~1"=="install" goto unsupported
if /i "%~1"=="enable" goto unsupported
exit /b 0
:unsupported
echo bringup-node is not made for this processor: %PROCESSOR_ARCHITECTURE% 1>&2
exit /b 52
:run
"%program%" %root% extension %1 --handler "%here%"
exit /b %ERRORLEVEL%
